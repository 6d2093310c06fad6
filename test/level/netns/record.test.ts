// The record comes first: whatever fails between the first rule and the last step, nothing of ours stays that a DEL does
// not find, in either backend and both families.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { describe, expect } from "vitest";
import { type Backend, backends, families } from "../../../src/netfilter/table.ts";
import { realTools } from "../../lab/fake-tools.ts";
import { makeForeignNetns } from "../../lab/netns.ts";
import { linkerd, loadState, ownLines } from "../../lab/states.ts";
import { freeConf, test as onNode } from "../faults/node.ts";
import { type Attachment, addressOf, confOf, kernelState, stateConf, test } from "./level.ts";

const file = "lab,c1,eth0.json";
const record = ({ stateDir }: Attachment) => join(stateDir, "attachments", file);

/** What keeps a record from being written, and what the error says of it. */
const obstacles: readonly {
  name: string;
  prepare: (attachment: Attachment) => () => void;
  code: number;
  told: string;
}[] = [
  {
    name: "a directory is at its path",
    prepare: (attachment) => {
      mkdirSync(record(attachment), { recursive: true });
      return () => rmSync(record(attachment), { recursive: true });
    },
    code: 5,
    told: "it is no regular file",
  },
  {
    name: "a link is at its path",
    prepare: (attachment) => {
      mkdirSync(join(attachment.stateDir, "attachments"));
      execaSync("ln", ["-s", "/etc/hostname", record(attachment)]);
      return () => rmSync(record(attachment));
    },
    code: 5,
    told: "it is a symbolic link",
  },
  { name: "the disk is full", prepare: fill, code: 5, told: "ENOSPC: no space left on device" },
  {
    name: "the file system is read-only",
    prepare: ({ stateDir }) => mount(stateDir, ["-t", "tmpfs", "-o", "ro,mode=0700", "none"]),
    code: 5,
    told: "EROFS: read-only file system",
  },
  {
    name: "others may write to the state directory",
    prepare: ({ stateDir }) => {
      execaSync("chmod", ["0770", stateDir]);
      return () => execaSync("chmod", ["0700", stateDir]);
    },
    code: 5,
    told: "others than its owner may write (mode 770)",
  },
  {
    name: "the state directory is somebody else's",
    prepare: ({ stateDir }) => {
      execaSync("chown", ["65534", stateDir]);
      return () => execaSync("chown", ["0", stateDir]);
    },
    code: 5,
    told: "it belongs to user 65534",
  },
];

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  test.for(obstacles)(
    "ADD fails before any rule, and names pod and path, when $name",
    ({ prepare, code, told }, { attachment }) => {
      const { netns, stateDir, call } = attachment;
      const before = kernelState(netns);
      const remove = prepare(attachment);
      const args = { ARGS: "K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web" };

      const answer = call("ADD", stateConf(backend, ...families), args);

      remove();
      const error: Record<string, unknown> = JSON.parse(answer.stdout);
      expect(error).toMatchObject({ code });
      const text = `${error["msg"]}; ${error["details"]}`;
      for (const part of ["pod emoji/web", stateDir, told]) expect(text).toContain(part);
      expect(kernelState(netns)).toBe(before);
      expect(readdirSync(stateDir).filter((name) => name.endsWith(".tmp"))).toStrictEqual([]);
      expect(attachment.records()).toStrictEqual([]);
    },
  );

  onNode(`ADD takes its rules out again when /proc/sys is read-only`, async ({ node }) => {
    const before = kernelState(node.pod);
    const setup = "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys";

    const answer = await node.call("ADD", closeWaitConf(backend), { setup });

    expect(JSON.parse(answer.stdout)).toMatchObject({
      code: 102,
      msg: expect.stringContaining("container c1 wants a close-wait-timeout"),
      details: expect.stringMatching(
        /nf_conntrack_tcp_timeout_close_wait: .*Read-only file system.*config\.linkerd\.io\/close-wait-timeout/,
      ),
    });
    expect(withoutTables(kernelState(node.pod))).toBe(before);
    expect(node.stateFile(`attachments/${file}`)).toBeUndefined();
  });

  onNode(
    "DEL finds what an ADD had written that was killed after its restore",
    async ({ node }) => {
      const { pod, tools } = node;
      const names = ["iptables", "ip6tables"].map((name) => `${name}-${backend}-restore`);
      const scripts = names.map((name) => [name, { script: killing(name) }] as const);
      tools.install({ ...realTools, ...Object.fromEntries(scripts) });

      const answer = await node.call("ADD", stateConf(backend, ...families)).catch(() => undefined);

      expect(answer?.stdout ?? "").toBe("");
      expect(kernelState(pod)).toContain("PROXY_INIT");
      expect(node.stateFile(`attachments/${file}`)).toMatchObject({ state: "intended", backend });
      tools.install(realTools);
      expect(await node.call("DEL", stateConf(backend))).toMatchObject({ exitCode: 0, stdout: "" });
      expect(kernelState(pod)).not.toContain("PROXY_INIT");
      expect(readdirSync(join(node.stateDir, "attachments"))).toStrictEqual([]);
    },
  );

  test("a second ADD without ipv6 takes the IPv6 rules out", ({ attachment }) => {
    const { netns, call } = attachment;
    const addresses = [addressOf.ipv4, addressOf.ipv6];
    call("ADD", modeConf(backend, { ipv6: true }, addresses));

    expect(call("ADD", modeConf(backend, { ipv6: false }, addresses)).exitCode).toBe(0);

    expect(ownLines(netns.run("ip6tables-nft-save", []))).toStrictEqual([]);
    expect(ownLines(netns.run("ip6tables-legacy-save", []))).toStrictEqual([]);
    expect(ownLines(netns.run(`iptables-${backend}-save`, []))).not.toStrictEqual([]);
    expect(call("CHECK", modeConf(backend, { ipv6: false }, addresses)).stdout).toBe("");
  });
});

/** What keeps everything from being written, of the processes that the plugin's call has around it. */
const limits: readonly [name: string, setup: (stateDir: string) => string][] = [
  ["no file may grow", () => "ulimit -f 0"],
  [
    "the state directory is read-only",
    (dir) => `mount --bind ${dir} ${dir}; mount -o remount,bind,ro ${dir}`,
  ],
  ["the state directory is full", (dir) => `mount -t tmpfs -o nr_inodes=1,mode=0700 none ${dir}`],
];

onNode.for(limits)(
  "what is only known of the node fails no CHECK when it cannot be kept: %s",
  async ([, setup], { node }) => {
    for (const family of families) {
      loadState({ netns: node.pod, backend: "nft", family }, "all in order");
    }
    const conf = freeConf(...families);

    const answer = await node.call("CHECK", conf, { setup: setup(node.stateDir) });

    expect(answer).toMatchObject({ exitCode: 0, stdout: "" });
    expect(readdirSync(node.stateDir).filter((name) => name !== "attachments")).toStrictEqual([]);
  },
);

onNode("ADD fails before any rule, and leaves no file, when no file may grow", async ({ node }) => {
  const before = kernelState(node.pod);
  const answer = await node.call("ADD", stateConf("nft", ...families), { setup: "ulimit -f 0" });
  expect(JSON.parse(answer.stdout)).toMatchObject({
    code: 5,
    details: expect.stringContaining("EFBIG"),
  });
  expect(kernelState(node.pod)).toBe(before);
  expect(readdirSync(join(node.stateDir, "attachments"))).toStrictEqual([]);
});

/** Two attachments of one pod, whose confs differ. */
const pairs: readonly { name: string; first: object; second: object }[] = [
  {
    name: "families",
    first: modeConf("nft", { ipv6: true }, [addressOf.ipv4, addressOf.ipv6]),
    second: modeConf("nft", { ipv6: true }, [addressOf.ipv4]),
  },
  {
    name: "ports",
    first: modeConf("nft", { "inbound-ports-to-ignore": [25] }, [addressOf.ipv4]),
    second: modeConf("nft", { "inbound-ports-to-ignore": [80] }, [addressOf.ipv4]),
  },
  {
    name: "backends",
    first: modeConf("legacy", {}, [addressOf.ipv4, addressOf.ipv6]),
    second: modeConf("nft", {}, [addressOf.ipv4]),
  },
];

describe.for(pairs)("two attachments of other $name", ({ first, second }) => {
  const net1 = { IFNAME: "net1" };

  test.for([["eth0"], ["net1"]])(
    "CHECK of both says yes, also when %s goes, and the last DEL leaves nothing",
    ([goes], { attachment }) => {
      const { netns, call } = attachment;
      call("ADD", first);
      call("ADD", second, net1);
      const both = [call("CHECK", first).stdout, call("CHECK", second, net1).stdout];
      const rules = kernelState(netns);

      const [gone, stays] = goes === "eth0" ? [first, second] : [second, first];
      const [here, there] = goes === "eth0" ? [{}, net1] : [net1, {}];
      call("DEL", gone, here);

      expect(both).toStrictEqual(["", ""]);
      expect(kernelState(netns)).toBe(rules);
      expect(call("CHECK", stays, there).stdout).toBe("");
      call("DEL", stays, there);
      expect(kernelState(netns)).not.toContain("PROXY_INIT");
      expect(attachment.records()).toStrictEqual([]);
    },
  );
});

test("the close-wait setting goes back with the last DEL, and with an ADD that does not want it", ({
  attachment,
}) => {
  const { netns, call } = attachment;
  const setting = () => netns.run("cat", [closeWaitFile]).trim();
  const found: string[] = [];
  const plain = stateConf("nft", "ipv4");
  call("ADD", plain);
  found.push(setting());
  call("ADD", closeWaitConf("nft"), { IFNAME: "net1" });
  found.push(setting());
  call("DEL", closeWaitConf("nft"), { IFNAME: "net1" });
  call("DEL", plain);
  found.push(setting());
  call("ADD", closeWaitConf("nft"));
  call("ADD", plain);
  found.push(setting());
  const [before] = found;
  expect(found).toStrictEqual([before, "90", before, before]);
});

test("DEL touches nothing by a record of another boot or of a path that leads elsewhere", ({
  attachment,
}) => {
  const { netns, call } = attachment;
  const conf = stateConf("nft", "ipv4");
  for (const change of [{ boot: "before" }, { netns: { path: "/run/netns/slc-none" } }]) {
    call("ADD", conf);
    const kept = rewrite(attachment, change);
    call("DEL", conf);
    expect(kernelState(netns), JSON.stringify(kept)).toContain("PROXY_INIT_OUTPUT");
    expect(attachment.records()).toStrictEqual([]);
  }
});

// xt_owner takes no rule there, from either backend; a table of legacy's that was made for nothing could not be deleted.
describe.for(["mapped", "unmapped"] as const)("a netns of another user namespace, %s", (map) => {
  test.for(["auto", "nft", ...(map === "mapped" ? ["legacy"] : [])])(
    "ADD says so and leaves nothing behind when iptables-mode is %s",
    (mode, { attachment, onTestFinished }) => {
      const netns = makeForeignNetns("foreign", map);
      onTestFinished(netns.remove);
      const before = kernelState(netns);
      const addresses = [addressOf.ipv4, addressOf.ipv6];
      const conf = confOf({ addresses, linkerd: { ...linkerd, "iptables-mode": mode } });

      const answer = attachment.call("ADD", conf, { NETNS: netns.path });

      expect(JSON.parse(answer.stdout)).toMatchObject({
        code: 101,
        details: expect.stringContaining("the netns belongs to another user namespace"),
      });
      expect(kernelState(netns)).toBe(before);
      expect(netns.run("cat", ["/proc/self/net/ip_tables_names"])).toBe("");
      expect(attachment.records()).toStrictEqual([]);
    },
  );
});

const closeWaitFile = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait";

function closeWaitConf(backend: Backend): object {
  return {
    ...stateConf(backend, "ipv4"),
    kubernetes: {},
    runtimeConfig: {
      "io.kubernetes.cri.pod-annotations": {
        "linkerd.io/proxy-version": "1",
        "config.linkerd.io/close-wait-timeout": "90s",
      },
    },
  };
}

function modeConf(backend: Backend, change: object, addresses: readonly string[]) {
  return confOf({ addresses, linkerd: { ...linkerd, ...change, "iptables-mode": backend } });
}

/** A file system over the state directory; gives what takes it away again. */
function mount(directory: string, words: readonly string[]): () => void {
  execaSync("mount", [...words, directory]);
  return () => execaSync("umount", [directory]);
}

function fill({ stateDir }: Attachment): () => void {
  const remove = mount(stateDir, ["-t", "tmpfs", "-o", "size=4k,mode=0700", "none"]);
  mkdirSync(join(stateDir, "attachments"));
  writeFileSync(join(stateDir, "full"), Buffer.alloc(4_096));
  return remove;
}

/** Does what the machine's own restore does, and then kills the plugin: whoever of its parents runs our executable. */
function killing(name: string): string {
  return `"$real/${name}" "$@" || exit
pid=$$
while [ "$pid" -gt 1 ]; do
  case $(readlink "/proc/$pid/exe") in */dist/sluice*) kill -9 "$pid"; exit ;; esac
  pid=$(awk '{ print $4 }' "/proc/$pid/stat")
done`;
}

/** legacy's tables cannot be deleted: they go with the netns. Empty, they hold nothing. */
function withoutTables(state: string): string {
  const legacy = /^\*nat\n(?::[A-Z]+ ACCEPT \[\d+:\d+\]\n)+COMMIT$/gm;
  const nft =
    /^table ip6? nat \{ # handle \d+\n(?:\tchain [A-Z]+ \{ # handle \d+\n\t\ttype .*\n\t\}\n\n?)*\}$/gm;
  return state.replaceAll(legacy, "").replaceAll(nft, "").trim();
}

/** Changes the record as if something else had come to pass. */
function rewrite(
  attachment: Attachment,
  change: { readonly netns?: object; readonly boot?: string },
) {
  const found = JSON.parse(readFileSync(record(attachment), "utf8"));
  const kept = { ...found, ...change, netns: { ...found.netns, ...change.netns } };
  writeFileSync(record(attachment), JSON.stringify(kept));
  return kept;
}
