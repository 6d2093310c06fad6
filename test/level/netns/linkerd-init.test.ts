// A pod whose linkerd-init runs after ADD: it finds our chains, empties and refills them with its own rules, one command a
// rule, and leaves the jumps that it finds. CHECK is content with all of them, and only with all.
import { describe, expect } from "vitest";
import { backends, families } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { save } from "../../lab/states.ts";
import { stateConf, test } from "./level.ts";

const comment = (text: string) => ["-m", "comment", "--comment", `proxy-init/${text}`];
const multiport = (ports: string) => ["-p", "tcp", "--match", "multiport", "--dports", ports];

/** What linkerd-init runs on such a netns, with the flags that the injector gives it for the conf of the states. */
const commands: readonly (readonly string[])[] = [
  ["-F", "PROXY_INIT_REDIRECT"],
  [
    "-A",
    "PROXY_INIT_REDIRECT",
    ...multiport("4191,4190,4567,4568"),
    "-j",
    "RETURN",
    ...comment("ignore-port-4191,4190,4567,4568"),
  ],
  [
    "-A",
    "PROXY_INIT_REDIRECT",
    "-p",
    "tcp",
    "-j",
    "REDIRECT",
    "--to-port",
    "4143",
    ...comment("redirect-all-incoming-to-proxy-port"),
  ],
  ["-F", "PROXY_INIT_OUTPUT"],
  [
    "-A",
    "PROXY_INIT_OUTPUT",
    "-m",
    "owner",
    "--uid-owner",
    "2102",
    "-j",
    "RETURN",
    ...comment("ignore-proxy-user-id"),
  ],
  ["-A", "PROXY_INIT_OUTPUT", "-o", "lo", "-j", "RETURN", ...comment("ignore-loopback")],
  [
    "-A",
    "PROXY_INIT_OUTPUT",
    ...multiport("4567,4568"),
    "-j",
    "RETURN",
    ...comment("ignore-port-4567,4568"),
  ],
  [
    "-A",
    "PROXY_INIT_OUTPUT",
    "-p",
    "tcp",
    "-j",
    "REDIRECT",
    "--to-port",
    "4140",
    ...comment("redirect-all-outgoing-to-proxy-port"),
  ],
];

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  const conf = stateConf(backend, ...families);
  const linkerdInit = (netns: LabNetns, upTo = commands.length) => {
    for (const family of families) {
      const program = `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}`;
      for (const command of commands.slice(0, upTo)) netns.run(program, ["-t", "nat", ...command]);
    }
  };
  const ownRules = (netns: LabNetns) =>
    families.map((family) => {
      const lines = save({ netns, backend, family }).split("\n");
      return lines.filter((line) => line.includes("PROXY_INIT_"));
    });

  test("its complete rules are no drift; ADD again writes ours", ({ attachment }) => {
    const { netns, call } = attachment;
    call("ADD", conf);
    const ours = ownRules(netns);
    linkerdInit(netns);

    expect(ownRules(netns)).not.toEqual(ours);
    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });

    expect(call("ADD", conf).exitCode).toBe(0);
    expect(ownRules(netns)).toEqual(ours);
    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
  });

  test.for([1, 2, 4, 5, 7])(
    "its rules are drift when it got no further than command %i",
    (upTo, { attachment }) => {
      const { netns, call } = attachment;
      call("ADD", conf);
      const ours = ownRules(netns);
      linkerdInit(netns, upTo);
      expect(JSON.parse(call("CHECK", conf).stdout)).toMatchObject({ code: 100 });

      call("ADD", conf);
      expect(ownRules(netns)).toEqual(ours);
      expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    },
  );

  test("its complete rules are drift when they mean something else", ({ attachment }) => {
    const { netns, call } = attachment;
    call("ADD", stateConf(backend, ...families));
    linkerdInit(netns);
    netns.run(`iptables-${backend}`, ["-t", "nat", "-D", "PROXY_INIT_REDIRECT", "1"]);
    const rest = [
      "-I",
      "PROXY_INIT_REDIRECT",
      ...multiport("4191,4190"),
      "-j",
      "RETURN",
      ...comment("ignore-port-4191,4190"),
    ];
    netns.run(`iptables-${backend}`, ["-t", "nat", ...rest]);

    const { details } = JSON.parse(call("CHECK", conf).stdout);
    expect(details.split("\n")).toMatchObject([
      expect.stringMatching(
        /^missing-rule \(ipv4 nat PROXY_INIT_REDIRECT\): expected .*4190,4191,4567,4568/,
      ),
      expect.stringMatching(
        /^extra-rule \(ipv4 nat PROXY_INIT_REDIRECT\): found .*--dports 4191,4190 /,
      ),
    ]);
  });
});
