// Parity that one ADD does not show: the other commands, what is only simulated, and what is logged.
import { describe, expect } from "vitest";
import { buildRulesets } from "../../../../src/mesh/linkerd/ruleset.ts";
import { renderRestore } from "../../../../src/netfilter/restore.ts";
import { freshTransaction } from "../../../../src/netfilter/transaction.ts";
import { meshed, objectsFor } from "../../../lab/api-objects.ts";
import type { ApiStub } from "../../../lab/api-stub.ts";
import { meantBy } from "../../../lab/meant.ts";
import {
  type Answer,
  type Attachment,
  chartDefault,
  confFor,
  injected,
  linesOf,
  lookInto,
  test,
} from "./level.ts";
import { callKeys } from "./rows.ts";

type Run = (pod: Attachment, api: ApiStub) => Promise<void>;
type Calls = Readonly<Record<(typeof callKeys)[number], readonly (readonly [string, Run])[]>>;

const prevResultOf = (conf: { prevResult: object }) => JSON.stringify(conf.prevResult);

/** ADD, which must be good. */
async function added(pod: Attachment, conf: { prevResult: object }): Promise<Answer> {
  const answer = await pod.call("ADD", conf);
  expect([answer.exitCode, answer.stdout]).toEqual([0, prevResultOf(conf)]);
  return answer;
}

// A pod that logs at every level: a warning, and the command's line.
const chatty = { containers: [{ name: "app", runAsUser: 2102 }, ...meshed.slice(1)] };

function levels(level: string | undefined, ...logged: readonly string[]): [string, Run] {
  const run: Run = async (pod, api) => {
    api.objects = objectsFor(chatty);
    const top = level === undefined ? {} : { log_level: level };
    const answer = await added(pod, confFor(pod, { top }));
    expect(linesOf(answer).map((line) => line["level"])).toEqual(logged);
  };
  return [`logs ${logged.join(", ") || "nothing"} at ${level ?? "no level"}`, run];
}

const calls: Calls = {
  "linkerd.simulate": [
    [
      "writes nothing, and logs the text for each family",
      async (pod, api) => {
        const linkerd = { ...chartDefault, ipv6: true, simulate: true };
        const answer = await added(pod, confFor(pod, { linkerd }));
        const { intent, families } = meantBy(linkerd);
        expect(linesOf(answer)).toMatchObject([
          ...buildRulesets(intent, families).map((ruleset) => ({
            level: "info",
            family: ruleset.family,
            restore: renderRestore(freshTransaction(ruleset)),
            msg: "simulate: nothing is written",
          })),
          { command: "ADD", families: ["ipv4", "ipv6"], execs: 0, msg: "done" },
        ]);
        expect([lookInto(pod).untouched, pod.records(), api.requests.length]).toEqual([
          true,
          [],
          2,
        ]);
      },
    ],
  ],
  log_level: [
    levels("debug", "warn", "info"),
    levels("info", "warn", "info"),
    levels("INFO", "warn", "info"),
    levels("warn", "warn"),
    levels("error"),
    levels("verbose", "warn", "info"),
    levels(undefined, "warn", "info"),
  ],
  CHECK: [
    [
      "is content, and names what somebody changed",
      async (pod, api) => {
        const conf = confFor(pod);
        await added(pod, conf);
        expect(await pod.call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
        const rule = "PROXY_INIT_OUTPUT -o lo -m comment --comment sluice/loopback -j RETURN";
        pod.netns.run("iptables-nft", ["-t", "nat", "-D", ...rule.split(" ")]);
        const { exitCode, stdout } = await pod.call("CHECK", conf);
        expect([exitCode, JSON.parse(stdout)]).toEqual([
          1,
          {
            cniVersion: "1.1.0",
            code: 100,
            msg: "pod emoji/web is not redirected as intended: 1 drift (nft)",
            details:
              'missing-rule (ipv4 nat PROXY_INIT_OUTPUT): expected -A PROXY_INIT_OUTPUT -o lo -m comment --comment "sluice/loopback" -j RETURN; found nothing',
          },
        ]);
        // Of the pod's facts, those of ADD are kept.
        expect(api.requests.length).toBe(2);
      },
    ],
    [
      "finds a close-wait-timeout that somebody changed",
      async (pod) => {
        const annotations = injected({ "config.linkerd.io/close-wait-timeout": "1m30s" });
        const conf = confFor(pod, { annotations });
        const setting = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait";
        expect(pod.netns.run("cat", [setting])).toBe("60");
        await added(pod, conf);
        expect(pod.netns.run("cat", [setting])).toBe("90");
        expect(await pod.call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
        pod.netns.run("sh", ["-c", `echo 61 >${setting}`]);
        const { exitCode, stdout } = await pod.call("CHECK", conf);
        expect([exitCode, JSON.parse(stdout)]).toEqual([
          1,
          {
            cniVersion: "1.1.0",
            code: 100,
            msg: "pod emoji/web is not redirected as intended: 1 drift (nft)",
            details:
              "changed-sysctl (net.netfilter.nf_conntrack_tcp_timeout_close_wait): expected 90; found 61",
          },
        ]);
        await added(pod, conf);
        expect(pod.netns.run("cat", [setting])).toBe("90");
      },
    ],
    [
      "knows the conf's close-wait-timeout, before which the pod's goes",
      async (pod) => {
        const setting = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait";
        const linkerd = { ...chartDefault, "close-wait-timeout": "1m30s" };
        const words: [own: Readonly<Record<string, string>>, seconds: string][] = [
          [{}, "90"],
          [{ "config.linkerd.io/close-wait-timeout": "30s" }, "30"],
        ];
        for (const [own, seconds] of words) {
          const conf = confFor(pod, { linkerd, annotations: injected(own) });
          await added(pod, conf);
          expect(pod.netns.run("cat", [setting])).toBe(seconds);
          expect(await pod.call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
        }
      },
    ],
    [
      "expects nothing of a pod that ADD left alone",
      async (pod, api) => {
        api.objects = objectsFor({ containers: [{ name: "app" }] });
        const conf = confFor(pod);
        await added(pod, conf);
        expect(await pod.call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
        expect(lookInto(pod).untouched).toBe(true);
      },
    ],
  ],
  DEL: [
    [
      "takes the rules out and asks nobody, twice",
      async (pod, api) => {
        const conf = confFor(pod);
        await added(pod, conf);
        api.mode = "hang";
        for (const _ of ["once", "again"]) {
          expect(await pod.call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
          expect([lookInto(pod).rules.ipv4, pod.records()]).toEqual([[], []]);
        }
        expect(api.requests.length).toBe(2);
      },
    ],
  ],
  "STATUS, GC": [
    [
      "ask nobody",
      async (pod, api) => {
        api.mode = "hang";
        const conf = confFor(pod);
        for (const command of ["STATUS", "GC"]) {
          expect(await pod.call(command, conf)).toMatchObject({ exitCode: 0, stdout: "" });
        }
        expect(api.requests).toEqual([]);
      },
    ],
    [
      "warn when the kubeconfig is not there: pods that need none are served",
      async (pod) => {
        const conf = confFor(pod, { top: { kubernetes: { kubeconfig: `${pod.dir}/gone` } } });
        const { exitCode, stdout, stderr } = await pod.call("STATUS", conf);
        expect([exitCode, stdout]).toEqual([0, ""]);
        expect(stderr).toContain(`"level":"warn"`);
        expect(stderr).toContain(`${pod.dir}/gone`);
      },
    ],
  ],
};

describe.for(callKeys)("%s", (key) => {
  test.for(calls[key])("%s", async ([, run], { pod, api }) => {
    await run(pod, api);
  });
});
