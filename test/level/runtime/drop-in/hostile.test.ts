// Whoever may write a pod may write any annotation. No text of it gets into a rule, breaks a line of the log, or reaches
// stdout other than in a JSON string.
import { describe, expect } from "vitest";
import { configKeys, configPrefix } from "../../../../src/mesh/linkerd/names.ts";
import { objectsFor } from "../../../lab/api-objects.ts";
import { argsOf, confFor, injected, linesOf, lookInto, test } from "./level.ts";

const texts: [what: string, text: string][] = [
  ["a line more", "80\n-A OUTPUT -j ACCEPT"],
  ["a line more, as Windows writes it", "80\r\nCOMMIT\r\n*nat\r\n-F OUTPUT"],
  ["an option more", "80 -j ACCEPT"],
  ["quotes", `80" -j ACCEPT -m comment --comment "'`],
  ["a shell's words", "$(touch /tmp/slc-hostile)`id`;&&|"],
  ["100 kB", `80,${"8".repeat(100_000)}`],
  ["100 kB of good ports and a bad one", `${"80,".repeat(33_000)}x`],
  ["unicode digits", "\u0668\u0660,\uff14\uff14\uff13"],
  ["invisible characters", "80\u200b\u202e,\u2028443\u0085\ufeff"],
  ["control characters", "80\u0000\u001b[2J\u0007"],
  ["half a character", "80\ud800"],
  ["JSON", '{"cniVersion":"1.1.0"}'],
  ["a look-alike", "8O"],
  ["names", "localhost,http,0x50,0120"],
];

const plain = [
  "-A PREROUTING -j PROXY_INIT_REDIRECT",
  "-A OUTPUT -j PROXY_INIT_OUTPUT",
  "-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -j RETURN",
  "-A PROXY_INIT_OUTPUT -o lo -j RETURN",
  "-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4140",
  "-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports 4190,4191 -j RETURN",
  "-A PROXY_INIT_REDIRECT -p tcp -j REDIRECT --to-ports 4143",
];

/** So long a line is too long for a collector; a text of 100 kB must not make one. */
const longestLine = 8_000;

describe.for(texts)("%s in every annotation", ([, text]) => {
  const annotations = Object.fromEntries(configKeys.map((key) => [configPrefix + key, text]));

  test.concurrent("ADD changes no rule when invalid annotations are only warned of", async ({
    pod,
  }) => {
    const sluice = { "on-invalid-annotation": "warn" };
    const conf = confFor(pod, { annotations: injected(annotations), sluice });

    const answer = await pod.call("ADD", conf);

    expect([answer.exitCode, answer.stdout]).toEqual([0, JSON.stringify(conf.prevResult)]);
    expect(lookInto(pod).rules.ipv4).toEqual(plain);
    expect(linesOf(answer).map(({ msg }) => msg)).toEqual(["annotations are passed over", "done"]);
    expect(answer.stderr.split("\n").filter((line) => line.length > longestLine)).toEqual([]);
    expect(answer.stderr).toMatch(/^[\n\x20-\x7e]*$/);
  });

  test.concurrent("ADD fails and writes nothing when they are rejected, by the API too", async ({
    api,
    pod,
  }) => {
    api.objects = objectsFor({ annotations });

    const answer = await pod.call("ADD", confFor(pod));

    expect(answer.exitCode).toBe(1);
    expect(JSON.parse(answer.stdout)).toEqual({
      cniVersion: "1.1.0",
      code: 103,
      msg: expect.stringMatching(/^pod emoji\/web has annotations that cannot be honoured: /),
      details: "correct or remove them",
    });
    // One line, and not long: runtimes put it into an event, which holds 1 kB.
    expect(answer.stdout).toMatch(/^[\x20-\x7e]{1,1500}$/);
    expect(linesOf(answer).length).toBe(1);
    expect(answer.stderr.length).toBeLessThan(longestLine);
    expect([lookInto(pod).untouched, pod.records()]).toEqual([true, []]);
  });
});

test("ADD logs one line of JSON when keys, marks and names are hostile", async ({ pod }) => {
  const hostile = 'x"\n{"level":"info","msg":"done"}\u2028';
  const annotations = {
    [`config.linkerd.io/skip-inbound-ports${hostile}`]: "25",
    [`config.linkerd.io/${hostile}`]: hostile,
    "linkerd.io/proxy-version": hostile,
    __proto__: "x",
    constructor: "x",
  };
  const conf = confFor(pod, { annotations });
  const args = argsOf({ namespace: `emoji${hostile}`, name: `web${hostile}` });

  const answer = await pod.call("ADD", conf, { CNI_ARGS: args });

  expect([answer.exitCode, answer.stdout]).toEqual([0, JSON.stringify(conf.prevResult)]);
  expect(lookInto(pod).rules.ipv4).toEqual(plain);
  expect(linesOf(answer)).toMatchObject([
    { msg: "done", pod: { namespace: `emoji${hostile}`, name: `web${hostile}` } },
  ]);
});

test("ADD takes no namespace's name for a key of deny-annotations", async ({ api, pod }) => {
  const sluice = { "deny-annotations": { "*": ["skip-inbound-ports"] } };
  const annotations = injected({ "config.linkerd.io/skip-inbound-ports": "25" });
  for (const namespace of ["constructor", "__proto__", "tostring"]) {
    const conf = confFor(pod, { annotations, sluice });
    const args = argsOf({ namespace, name: "web" });
    const { stdout } = await pod.call("ADD", conf, { CNI_ARGS: args });
    expect(JSON.parse(stdout)).toMatchObject({ code: 103 });
  }
  expect([lookInto(pod).untouched, api.requests]).toEqual([true, []]);
});
