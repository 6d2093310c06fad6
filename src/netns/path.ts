// Is CNI_NETNS a network namespace, and not our own? Asked before anything runs. The namespace is then held open:
// the one that was judged is the one that is entered, whatever becomes of the path.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  statfsSync,
  statSync,
} from "node:fs";
import { Fault } from "../fault.ts";
import { isSameNetns, type NetnsId } from "./identity.ts";

/** A network namespace, held open. */
export type Netns = NetnsId & {
  readonly path: string;
  readonly fd: number;
  /** Where another process finds the open namespace, as long as this process holds it. */
  readonly handle: string;
};

/** Which netns, and whether it may be the plugin's own: rules there would cut the node off. */
export type Opening = { readonly path: string; readonly allowOwn: boolean };

/** The file system that namespaces are on (statfs.f_type): nsfs. Kernels that had them on procfs run no Node of today. */
const namespaceMagic = 0x6e73_6673;

/**
 * Opens the netns at `path`.
 * @throws Fault netns-gone when nothing is there, try-again or io when it cannot be opened although it may be there, netns-unusable when it is no
 * netns, 8 when it is the plugin's own (the node's) and the caller did not say that this is meant: rules there would cut
 * the node off.
 */
export function openNetns({ path, allowOwn }: Opening): Netns {
  const fd = openPath(path);
  try {
    requireNetns(path, fd);
    const { dev: device, ino: inode } = fstatSync(fd);
    const own = statSync("/proc/self/ns/net");
    if (isSameNetns({ device: own.dev, inode: own.ino }, { device, inode }) && !allowOwn) {
      throw new Fault(
        "netns-own",
        "plugin's netns and netns from CNI_NETNS should not be the same",
        { details: `${path} is the node's own network namespace; nothing was changed` },
      );
    }
    return { path, fd, handle: `/proc/${process.pid}/fd/${fd}`, device, inode };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

// The open file is asked, not the path, which may lead elsewhere by now.
function requireNetns(path: string, fd: number): void {
  const open = `/proc/self/fd/${fd}`;
  const magic = statfsSync(open).type;
  if (magic !== namespaceMagic) throw notNetns(path, `unknown FS magic ${magic.toString(16)}`);
  // A namespace of /proc calls itself `mnt:[4026531841]`. A bind mount shows its own path, whatever its kind: if that
  // is another one, nsenter refuses it.
  const kind = /^(\w+):\[\d+\]$/.exec(readlinkSync(open))?.[1] ?? "net";
  if (kind !== "net") throw notNetns(path, `it is a namespace of kind ${kind}`);
}

function notNetns(path: string, details: string): Fault {
  const message = `CNI_NETNS ${path} is not a network namespace`;
  return new Fault("netns-unusable", message, { details });
}

// Non-blocking: opening a pipe that nobody writes to would wait for ever.
function openPath(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    const { kind, advice } = readOpenFailure(cause);
    throw new Fault(kind, `CNI_NETNS ${path} cannot be opened`, {
      details: `${cause instanceof Error ? cause.message : String(cause)}; ${advice}`,
      cause,
    });
  }
}

const absence = ["ENOENT", "ENOTDIR", "ESRCH"];
const shortage = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EINTR"];

// That it is gone tells the runtime that there is nothing to clean up: only where nothing is there.
function readOpenFailure(cause: unknown): Pick<Fault, "kind"> & { readonly advice: string } {
  const found = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (absence.includes(found)) {
    return { kind: "netns-gone", advice: "the pod is gone, or the path is wrong" };
  }
  if (shortage.includes(found)) {
    return {
      kind: "try-again",
      advice: "descriptors or memory are short on the node or for the runtime; try again",
    };
  }
  return {
    kind: "io",
    advice:
      "whether the pod is there is not known; see the path's links and rights, and what SELinux denies",
  };
}

/** Lets go of the netns. */
export function closeNetns(netns: Netns): void {
  closeSync(netns.fd);
}
