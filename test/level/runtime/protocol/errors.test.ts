// Every error code, provoked once, with its whole JSON: code, and texts that stand alone, since runtimes show only those.
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { changeNat, savedNat } from "../../../lab/pod-nat.ts";
import { outboundJump } from "../../../lab/states.ts";
import { kubeconfig } from "./api-listener.ts";
import { makeFakePath, refusing } from "./fake-path.ts";
import { failure, forms, linkerd, type More, type Program, type Scene, test } from "./scene.ts";

type Provocation = {
  readonly code: number;
  readonly name: string;
  readonly command?: string;
  /** Prepares the scene; gives what the call is made with. */
  readonly more?: (scene: Scene) => More | Promise<More>;
  readonly keys?: (scene: Scene) => object;
  readonly stdin?: string;
  /** `@` stands for the scene's directory, `#` for the pod's netns. */
  readonly msg: string;
  readonly details?: string;
};

const pod = { CNI_ARGS: "K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web" };
const inside = ({ pod: { path } }: Scene): Program => {
  return ["nsenter", `--net=${path}`, "--", ...forms.executable];
};

const provocations: readonly Provocation[] = [
  {
    code: 1,
    name: "the version is not spoken",
    keys: () => ({ cniVersion: "9.9.9" }),
    msg: "incompatible CNI versions",
    details: 'config is "9.9.9", plugin supports ["0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]',
  },
  {
    code: 3,
    name: "the netns is gone",
    more: () => ({ env: { CNI_NETNS: "/run/netns/slc-none" } }),
    msg: "CNI_NETNS /run/netns/slc-none cannot be opened",
    details:
      "ENOENT: no such file or directory, open '/run/netns/slc-none'; the pod is gone, or the path is wrong",
  },
  {
    code: 4,
    name: "variables are missing",
    more: () => ({ env: { CNI_NETNS: "", CNI_IFNAME: undefined } }),
    msg: "required env variables [CNI_NETNS,CNI_IFNAME] missing",
  },
  ...["constructor", "toString", "__proto__"].map((command) => ({
    code: 4,
    name: `the command is ${command}, which every object has`,
    command,
    msg: `unknown CNI_COMMAND: ${command}`,
  })),
  {
    code: 5,
    name: "stdin cannot be read",
    more: () => ({ program: ["bash", "-c", 'exec "$@" </', "bash", ...forms.executable] }),
    msg: "error reading from stdin: EISDIR: illegal operation on a directory, read",
  },
  {
    code: 6,
    name: "stdin is no JSON",
    stdin: '{"name":"lab",}',
    msg: `error unmarshall network config: Expected double-quoted property name in JSON at position 14 (line 1 column 15)`,
  },
  {
    code: 7,
    name: "a value of the conf is invalid",
    keys: () => ({ linkerd: { ...linkerd, "proxy-uid": 0 } }),
    msg: "invalid conf: linkerd.proxy-uid: 0 is not a user id (1 to 4294967294)",
  },
  {
    code: 8,
    name: "the netns is the plugin's own",
    more: (scene) => ({ program: inside(scene) }),
    msg: "plugin's netns and netns from CNI_NETNS should not be the same",
    details: "# is the node's own network namespace; nothing was changed",
  },
  {
    code: 11,
    name: "the API server cannot be reached",
    more: ({ dir }) => {
      writeFileSync(join(dir, "kubeconfig"), kubeconfig(1));
      return { env: pod };
    },
    keys: ({ dir, stateDir }) => ({
      kubernetes: { kubeconfig: join(dir, "kubeconfig") },
      sluice: { "state-dir": stateDir, "timeout-seconds": 4 },
    }),
    msg: "the API server did not answer: GET https://127.0.0.1:1/api/v1/namespaces/emoji/pods/web: connect ECONNREFUSED 127.0.0.1:1",
    details:
      "a pod that may be meshed does not start without its redirect; see that the API server can be reached from the node",
  },
  {
    code: 50,
    name: "the node lacks a program",
    command: "STATUS",
    more: () => {
      const script = 'mount --bind /dev/null /usr/bin/nsenter && exec "$@"';
      return { program: ["unshare", "-m", "sh", "-c", script, "sh", ...forms.executable] };
    },
    msg: "sluice cannot work on this node: nsenter is not on the node; install util-linux",
  },
  {
    code: 100,
    name: "somebody took a jump out",
    command: "CHECK",
    more: async (scene) => {
      await scene.call("ADD", scene.conf(), { env: pod });
      changeNat(scene.pod, "nft", [outboundJump.replace("-A", "-D")]);
      return { env: pod };
    },
    msg: "pod emoji/web is not redirected as intended: 1 drift (nft)",
    details: `missing-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found nothing`,
  },
  {
    code: 101,
    name: "the tool refuses the rules",
    more: (scene) => {
      const fakes = makeFakePath(scene);
      fakes.put("iptables-nft-restore", refusing);
      return { env: { PATH: fakes.path } };
    },
    msg: "@/bin/iptables-nft-restore (nft, ipv4, table nat) failed: oh no",
    details: "see the tool's message; nothing of ours is left half-way",
  },
  {
    code: 102,
    name: "the netns is none",
    more: () => ({ env: { CNI_NETNS: "/proc/self/status" } }),
    msg: "CNI_NETNS /proc/self/status is not a network namespace",
    details: "unknown FS magic 9fa0",
  },
  {
    code: 103,
    name: "an annotation cannot be read",
    more: () => ({ env: pod }),
    keys: () => ({
      kubernetes: {},
      runtimeConfig: {
        "io.kubernetes.cri.pod-annotations": {
          "linkerd.io/proxy-version": "1",
          "config.linkerd.io/skip-inbound-ports": "25,x-y",
        },
      },
    }),
    msg: 'pod emoji/web has annotations that cannot be honoured: config.linkerd.io/skip-inbound-ports: "x-y" is not a range of ports (1-65535, lower end first)',
    details: "correct or remove them",
  },
];

test.concurrent.for(provocations)(
  "the error has code $code and stands alone when $name",
  async (one, { scene }) => {
    const { code, command = "ADD", msg, details = "" } = one;
    const more = (await one.more?.(scene)) ?? {};
    const stdin = one.stdin ?? scene.conf(one.keys?.(scene));
    const { exitCode, stdout } = await scene.call(command, stdin, more);
    const here = (text: string) => text.replaceAll("@", scene.dir).replaceAll("#", scene.pod.path);
    expect([exitCode, stdout]).toEqual([1, failure(code, here(msg), here(details))]);
  },
);

test("the error has code 5, and no rule is left, when the record cannot be written", async ({
  scene,
}) => {
  writeFileSync(scene.stateDir, "");
  const { exitCode, stdout } = await scene.call("ADD", scene.conf());
  const details = `EEXIST: file already exists, mkdir '${scene.stateDir}'`;
  expect([exitCode, stdout]).toEqual([1, failure(5, "mkdir failed for container c1", details)]);
  expect(savedNat(scene.pod)).not.toContain("PROXY_INIT");
});

test("the error has code 5 and names the record when GC cannot remove it", async ({ scene }) => {
  const record = join(scene.stateDir, "attachments/lab,c1,eth0.json");
  mkdirSync(record, { recursive: true });
  utimesSync(record, 1, 1);
  const { exitCode, stdout } = await scene.call("GC", scene.conf());
  const problem = `Path is a directory: rm returned EISDIR (is a directory) ${record}`;
  const msg = "1 of 1 stale records of network lab could not be removed";
  expect([exitCode, stdout]).toEqual([1, failure(5, msg, problem)]);
});
