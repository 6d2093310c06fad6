// Is CNI_NETNS a network namespace, and not our own? Asked before anything runs. The namespace is then held open:
// the one that was judged is the one that is entered, whatever becomes of the path.
import { closeSync, fstatSync, openSync, statfsSync, statSync } from "node:fs";
import { CniError, errorCode } from "../cni/error.ts";

/** A network namespace, held open. */
export type Netns = {
  readonly path: string;
  readonly fd: number;
  /** Where another process finds the open namespace, as long as this process holds it. */
  readonly handle: string;
  /** What identifies it as long as it lives; the kernel gives numbers out again afterwards. */
  readonly device: number;
  readonly inode: number;
};

/** File systems that namespaces are on (statfs.f_type): nsfs, and procfs on old kernels. */
const namespaceMagic = [0x6e73_6673, 0x9fa0];

/**
 * Opens the netns at `path`.
 * @throws CniError 3 when nothing is there, 102 when it is no netns, 8 when it is the plugin's own (the node's) and the
 * caller did not say that this is meant: rules there would cut the node off.
 */
export function openNetns(path: string, allowOwn: boolean): Netns {
  const fd = openPath(path);
  try {
    const magic = statfsSync(path).type;
    if (!namespaceMagic.includes(magic)) {
      throw new CniError(errorCode.netnsUnusable, `CNI_NETNS ${path} is not a network namespace`, {
        details: `unknown FS magic ${magic.toString(16)}`,
      });
    }
    const { dev: device, ino: inode } = fstatSync(fd);
    const own = statSync("/proc/self/ns/net");
    if (own.dev === device && own.ino === inode && !allowOwn) {
      throw new CniError(
        errorCode.invalidNetns,
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

function openPath(path: string): number {
  try {
    return openSync(path, "r");
  } catch (cause) {
    throw new CniError(errorCode.unknownContainer, `CNI_NETNS ${path} cannot be opened`, {
      details: `${cause instanceof Error ? cause.message : String(cause)}; the pod is gone, or the path is wrong`,
      cause,
    });
  }
}

/** Lets go of the netns. */
export function closeNetns(netns: Netns): void {
  closeSync(netns.fd);
}
