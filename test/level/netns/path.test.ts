// CNI_NETNS that is missing, no netns, or the plugin's own: ADD and CHECK say so before anything runs; DEL passes.
import { mkdirSync, mkdtempSync, rmSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execaSync } from "execa";
import { describe, expect } from "vitest";
import { node, root } from "../../lab/plugin.ts";
import { complete, ownLines, save } from "../../lab/states.ts";
import { type Attachment, kernelState, test as level, logLine, named, stateConf } from "./level.ts";

/** A directory with one file of each kind in it. */
const test = level.extend("directory", ({ attachment }, { onCleanup }): string => {
  const directory = mkdtempSync(join(tmpdir(), "slc-path-"));
  writeFileSync(join(directory, "file"), "");
  symlinkSync("file", join(directory, "link"));
  symlinkSync("gone", join(directory, "dangling"));
  symlinkSync("loop", join(directory, "loop"));
  execaSync("mkfifo", [join(directory, "pipe")]);
  writeFileSync(join(directory, "uts"), "");
  execaSync("mount", ["--bind", "/proc/self/ns/uts", join(directory, "uts")]);
  onCleanup(() => {
    execaSync("umount", [join(directory, "uts")]);
    attachment.netns.remove();
    rmSync(directory, { recursive: true });
  });
  return directory;
});

type Wrong = {
  readonly name: string;
  /** `@` stands for the directory, also in the texts; `#` for the kind of file system that it is on. */
  readonly path: string;
  readonly code: number;
  readonly msg: string;
  readonly details: string;
  /** Children that it took to find out. */
  readonly execs?: number;
};

function absent(name: string, path: string, error: string): Wrong {
  const details = `${error}, open '${path}'; the pod is gone, or the path is wrong`;
  return { name, path, code: 3, msg: `CNI_NETNS ${path} cannot be opened`, details };
}

// Whether the pod is there is not known: not code 3, which tells the runtime to clean nothing up.
function unopened(name: string, path: string, error: string): Wrong {
  const advice =
    "whether the pod is there is not known; see the path's links and rights, and what SELinux denies";
  const details = `${error}, open '${path}'; ${advice}`;
  return { name, path, code: 5, msg: `CNI_NETNS ${path} cannot be opened`, details };
}

function noNetns(name: string, path: string, details: string): Wrong {
  return { name, path, code: 102, msg: `CNI_NETNS ${path} is not a network namespace`, details };
}

const wrongs: readonly Wrong[] = [
  absent("nothing", "@/gone", "ENOENT: no such file or directory"),
  absent("nothing, below a file", "@/file/net", "ENOTDIR: not a directory"),
  absent("a process that is gone", "/proc/4194305/ns/net", "ENOENT: no such file or directory"),
  absent("a link to nothing", "@/dangling", "ENOENT: no such file or directory"),
  unopened("a link to itself", "@/loop", "ELOOP: too many symbolic links encountered"),
  unopened("a path that is too long", `/${"x".repeat(4_096)}`, "ENAMETOOLONG: name too long"),
  noNetns("a regular file", "@/file", "unknown FS magic #"),
  noNetns("a link to a regular file", "@/link", "unknown FS magic #"),
  noNetns("a directory", "@", "unknown FS magic #"),
  noNetns("a pipe that nobody writes to", "@/pipe", "unknown FS magic #"),
  noNetns("a file of /proc", "/proc/self/status", "unknown FS magic 9fa0"),
  noNetns("the directory of the namespaces", "/proc/self/ns", "unknown FS magic 9fa0"),
  noNetns("a mount namespace", "/proc/self/ns/mnt", "it is a namespace of kind mnt"),
  noNetns("a user namespace", "/proc/self/ns/user", "it is a namespace of kind user"),
  noNetns("a UTS namespace", "/proc/self/ns/uts", "it is a namespace of kind uts"),
  {
    name: "a bind mount of a UTS namespace",
    path: "@/uts",
    code: 102,
    msg: "could not work in the netns of container c1: entering the netns failed with exit status 1: nsenter: reassociate to namespace 'ns/net' failed: Invalid argument",
    details: "nothing of ours is left half-way; a family's rules are loaded all or not at all",
    // The kernel alone can tell, and does when it is to be entered.
    execs: 1,
  },
];

const conf = stateConf("nft", "ipv4");

describe.for(["ADD", "CHECK"])("%s", (command) => {
  test.for(named(wrongs, ({ name }) => name))(
    "fails clearly and changes nothing when CNI_NETNS is %s",
    ([, wrong], { attachment, directory }) => {
      const answer = attachment.call(command, conf, { NETNS: wrong.path.replace("@", directory) });

      expect(answer).toMatchObject({ exitCode: 1, stdout: errorOf(wrong, directory) });
      expect(logLine(answer)["execs"]).toBe(wrong.execs ?? 0);
      expect(attachment.records()).toStrictEqual([]);
      expect(kernelState(attachment.netns)).toBe("");
    },
  );

  test.for(["/proc/self/ns/net", "/proc/thread-self/ns/net", "@"])(
    "fails clearly and changes nothing when CNI_NETNS is the plugin's own, as %s",
    (own, { attachment }) => {
      const path = own.replace("@", attachment.netns.path);

      const answer = attachment.callInside(command, conf, { NETNS: path });

      expect(answer).toMatchObject({ exitCode: 1, stdout: errorOf(ownNetns(path), "") });
      expect(logLine(answer)["execs"]).toBe(0);
      expect(attachment.records()).toStrictEqual([]);
      expect(kernelState(attachment.netns)).toBe("");
    },
  );
});

describe("DEL", () => {
  test.for(named(wrongs, ({ name }) => name))(
    "passes and leaves the pod's rules alone when CNI_NETNS is %s",
    ([, wrong], { attachment, directory }) => {
      attachment.call("ADD", conf);
      const before = kernelState(attachment.netns);

      const answer = attachment.call("DEL", conf, { NETNS: wrong.path.replace("@", directory) });

      expect(answer).toMatchObject({ exitCode: 0, stdout: "" });
      expect(logLine(answer)["execs"]).toBe(0);
      // Of what may be there and was not opened, the record is kept for a DEL that can.
      const kept = wrong.code === 5 ? ["lab,c1,eth0.json"] : [];
      expect(attachment.records()).toStrictEqual(kept);
      expect(kernelState(attachment.netns)).toBe(before);
    },
  );

  // The record says the same: after a reboot, or when a process id is used again, a path may lead to the node itself.
  test.for(["/proc/self/ns/net", "@"])(
    "passes and touches nothing when CNI_NETNS is the plugin's own, as %s",
    (own, { attachment }) => {
      attachment.call("ADD", conf);
      const before = kernelState(attachment.netns);
      expect(ownLines(save({ netns: attachment.netns, backend: "nft", family: "ipv4" }))).toEqual(
        complete,
      );

      const answer = insideOf(attachment, "DEL", own);

      expect(answer).toMatchObject({ exitCode: 0, stdout: "" });
      expect(logLine(answer)["execs"]).toBe(0);
      expect(kernelState(attachment.netns)).toBe(before);
    },
  );

  test("passes and touches nothing when CNI_NETNS is unset", ({ attachment }) => {
    attachment.call("ADD", conf);
    const before = kernelState(attachment.netns);

    expect(attachment.call("DEL", conf, { NETNS: "" })).toMatchObject({ exitCode: 0, stdout: "" });
    expect(kernelState(attachment.netns)).toBe(before);
  });

  test("passes and touches nothing when CNI_NETNS is another pod's", ({ attachment, other }) => {
    attachment.call("ADD", conf);
    attachment.call("ADD", conf, { CONTAINERID: "c2", NETNS: other.path });
    const before = [kernelState(attachment.netns), kernelState(other)];

    const answer = attachment.call("DEL", conf, { NETNS: other.path });

    expect(answer).toMatchObject({ exitCode: 0, stdout: "" });
    expect([kernelState(attachment.netns), kernelState(other)]).toStrictEqual(before);
  });
});

test("ADD writes to the plugin's own netns when CNI_NETNS_OVERRIDE says that this is meant", ({
  attachment,
}) => {
  const { netns, callInside } = attachment;

  const answer = callInside("ADD", conf, { NETNS: "/proc/self/ns/net", NETNS_OVERRIDE: "1" });

  expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
  expect(ownLines(save({ netns, backend: "nft", family: "ipv4" }))).toStrictEqual(complete);
});

function ownNetns(path: string): Wrong {
  return {
    name: "",
    path,
    code: 8,
    msg: "plugin's netns and netns from CNI_NETNS should not be the same",
    details: `${path} is the node's own network namespace; nothing was changed`,
  };
}

function insideOf(attachment: Attachment, command: string, path: string) {
  const { netns, callInside } = attachment;
  return callInside(command, conf, { NETNS: path.replace("@", netns.path) });
}

function errorOf({ code, msg, details }: Wrong, directory: string): string {
  const filled = (text: string) => text.replace("@", directory).replace("#", magicOf(directory));
  return JSON.stringify({
    cniVersion: "1.1.0",
    code,
    msg: filled(msg),
    details: filled(details),
  });
}

function magicOf(directory: string): string {
  return directory === "" ? "" : statfsSync(directory).type.toString(16);
}

// In a process of its own, which takes all descriptors that it may have, or another user's rights.
test.for([
  [
    "descriptors are short",
    "for (;;) try { openSync('/dev/null'); } catch { break; }",
    "try-again",
  ],
  ["others may not look there", "process.setuid(65534);", "io"],
] as const)(
  "openNetns() does not take the pod for gone when %s",
  ([, before, kind], { attachment, directory }) => {
    const closed = join(directory, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const path = kind === "try-again" ? attachment.netns.path : join(closed, "netns");
    const script = `
      const { openSync } = await import("node:fs");
      const { openNetns } = await import("./src/netns/path.ts");
      ${before}
      try { openNetns({ path: ${JSON.stringify(path)}, allowOwn: false }); } catch (error) { process.stdout.write(error.kind); }`;
    const argv = ["--nofile=64", node, "--input-type=module", "--eval", script];
    expect(execaSync("prlimit", argv, { cwd: root, reject: false }).stdout).toBe(kind);
  },
);
