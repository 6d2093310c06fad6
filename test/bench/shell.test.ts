import { expect, test } from "vitest";
import { rules } from "./conf.ts";
import { initScript, restoreScript, restoreText, saveScript } from "./shell.ts";

const dual = { families: ["ipv4", "ipv6"], backend: "nft" } as const;

test("restoreScript() runs both families side by side", () => {
  expect(restoreScript(dual)).toBe(`set -e
nsenter --net="$1" -- iptables-nft-restore --noflush <"$2" &
nsenter --net="$1" -- ip6tables-nft-restore --noflush <"$2"
wait $!
`);
});

test("saveScript() does so too", () => {
  expect(saveScript({ ...dual, backend: "legacy" })).toBe(`set -e
nsenter --net="$1" -- iptables-legacy-save -t nat &
nsenter --net="$1" -- ip6tables-legacy-save -t nat
wait $!
`);
});

test("initScript() enters the netns for each rule, and to look before and after, family by family", () => {
  const [first, ...lines] = initScript(dual).trimEnd().split("\n");
  expect(first).toBe("set -e");
  expect(lines).toHaveLength(2 * (rules.length + 2));
  const expected = ["iptables-nft", "ip6tables-nft"].flatMap((tool) => [
    `${tool}-save -t nat`,
    ...rules.map((rule) => `${tool} -t nat ${rule}`),
    `${tool}-save -t nat`,
  ]);
  expect(lines).toEqual(expected.map((command) => `nsenter --net="$1" -- ${command}`));
});

test("restoreText is the same rules in one transaction", () => {
  expect(restoreText).toBe(`*nat\n${rules.join("\n")}\nCOMMIT\n`);
});
