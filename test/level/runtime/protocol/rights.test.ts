// A runtime without all of root's rights: which is missing, and which tool needs it, is said; the kernel is not blamed.
import { expect } from "vitest";
import { savedNat } from "../../../lab/pod-nat.ts";
import { failure, forms, linkerd, type Program, test } from "./scene.ts";

const without = (...names: string[]): Program => {
  const bounds = names.map((name) => `-${name}`).join(",");
  return ["setpriv", "--bounding-set", bounds, "--inh-caps", bounds, ...forms.executable];
};

const given = (names: string) =>
  `the plugin runs without ${names}, which iptables needs: give it to the runtime`;
const nft =
  "/usr/sbin/iptables-nft-restore (nft, ipv4, table nat) failed: iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)";
const legacy =
  "/usr/sbin/iptables-legacy-restore (legacy, ipv4, table nat) failed: iptables-restore v1.8.9 (legacy): iptables-restore: unable to initialize table 'nat'";
const entering = (said: string) =>
  `could not work in the netns of container c1: entering the netns failed with exit status 1: ${said}`;

type Row = {
  readonly lacked: readonly string[];
  readonly mode: string;
  readonly code: number;
  readonly msg: string;
  readonly details: string;
};
const rows: readonly Row[] = [
  { lacked: ["net_admin"], mode: "nft", code: 101, msg: nft, details: given("CAP_NET_ADMIN") },
  {
    lacked: ["net_admin"],
    mode: "legacy",
    code: 101,
    msg: legacy,
    details: given("CAP_NET_ADMIN"),
  },
  { lacked: ["net_raw"], mode: "legacy", code: 101, msg: legacy, details: given("CAP_NET_RAW") },
  {
    lacked: ["net_admin", "net_raw"],
    mode: "auto",
    code: 101,
    msg: "neither nft nor legacy iptables works on this node",
    details: `nft: ${nft} (${given("CAP_NET_ADMIN")}); legacy: ${legacy} (${given("CAP_NET_ADMIN and CAP_NET_RAW")})`,
  },
  {
    lacked: ["sys_admin"],
    mode: "nft",
    code: 102,
    msg: entering("nsenter: reassociate to namespace 'ns/net' failed: Operation not permitted"),
    details: "nsenter needs root with CAP_SYS_ADMIN (and CAP_SYS_PTRACE) to enter a netns",
  },
  {
    lacked: ["sys_admin"],
    mode: "auto",
    code: 102,
    msg: entering("unshare: unshare failed: Operation not permitted"),
    details: "unshare needs root with CAP_SYS_ADMIN to make a netns",
  },
];

test.concurrent.for(rows)(
  "ADD names the right that it lacks without $lacked, with $mode",
  async ({ lacked, mode, code, msg, details }, { scene }) => {
    const conf = scene.conf({ linkerd: { ...linkerd, "iptables-mode": mode } });
    const { exitCode, stdout } = await scene.call("ADD", conf, { program: without(...lacked) });
    expect([exitCode, stdout]).toEqual([1, failure(code, msg, details)]);
    expect(savedNat(scene.pod)).not.toContain("PROXY_INIT");
  },
);

test("ADD needs no right of root's that the tools do not need", async ({ scene }) => {
  const program = without("net_raw", "sys_resource", "sys_ptrace", "dac_override", "sys_module");
  const { exitCode } = await scene.call("ADD", scene.conf(), { program });
  expect(exitCode).toBe(0);
});
