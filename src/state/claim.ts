// A claim to a lock: a named socket in the lock directory. Somebody listens on it as long as the process that made it lives, and
// the kernel ends that, however the process ends and in whichever PID, mount or network namespace. lock.ts says who wins.
import { once } from "node:events";
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
} from "node:fs";
import { connect, createServer, type Socket } from "node:net";

/** A claim of this process. Others can tell that it lives until it is released, or the process ends. */
export type Claim = { readonly name: string; readonly release: () => void };

/** A directory that is held open. */
export type OpenDirectory = {
  /** Its path, short whatever its own is: a socket's address has room for 107 bytes. */
  readonly at: string;
  readonly close: () => void;
};

/** Opens a directory. @throws the system's error, also where it is a link. */
export function openDirectory(path: string): OpenDirectory {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return { at: `/proc/self/fd/${fd}`, close: () => closeSync(fd) };
}

/**
 * Claims under this name, which must never have been used before. It comes into its place when somebody listens already: so
 * who is refused there knows that the claim is over for good, and may remove the name.
 * @throws the system's error; nothing is left then.
 */
export async function makeClaim({ at }: OpenDirectory, name: string): Promise<Claim> {
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    waiting.add(socket.on("close", () => waiting.delete(socket)).on("error", ignore));
    // Only who reads learns that the other side has left.
    socket.resume();
  }).on("error", ignore);
  const release = () => {
    removeClaim(`${at}/${name}`);
    // This removes the temporary name, where it is there still.
    server.close();
    for (const socket of waiting) socket.destroy();
  };
  try {
    const temporary = `${at}/.${name}.tmp`;
    // Exclusive: by this process itself, also where Node takes it for a worker of a cluster.
    server.listen({ path: temporary, exclusive: true });
    if (!server.listening) await once(server, "listening");
    renameSync(temporary, `${at}/${name}`);
  } catch (error) {
    release();
    throw error;
  }
  return { name, release };
}

// The end of a connection does not concern the claim: the other side connects again.
function ignore(): void {}

/**
 * The name of the first claim in order that begins with `prefix` and is not `own`; undefined when there is none. What is no
 * socket is no claim.
 */
export function firstClaim({ at }: OpenDirectory, prefix: string, own: string): string | undefined {
  const isSocket = (name: string) => {
    return lstatSync(`${at}/${name}`, { throwIfNoEntry: false })?.isSocket() === true;
  };
  return readdirSync(at)
    .filter((name) => name.startsWith(prefix) && name !== own)
    .toSorted()
    .find(isSocket);
}

/**
 * Waits for the end of a claim, and removes what a killed process left of it.
 * @returns "" when it is over for good, or how the wait ended, for people: then it may be over.
 */
export async function awaitEnd(
  { at }: OpenDirectory,
  name: string,
  withinMs: number,
): Promise<string> {
  const path = `${at}/${name}`;
  const said = await connection(path, withinMs);
  if (said === refused) removeClaim(path);
  return said === refused || said === absent ? "" : said;
}

const refused = "ECONNREFUSED";
const absent = "ENOENT";

// How a connection ended over which nothing is said.
function connection(path: string, withinMs: number): Promise<string> {
  return new Promise((resolve) => {
    let said = "its process has hung up";
    const socket = connect({ path });
    socket.setTimeout(Math.max(leastMs, Math.ceil(withinMs)), () => {
      said = "its process lives";
      socket.destroy();
    });
    socket.on("error", (error) => {
      said = "code" in error ? String(error.code) : error.message;
    });
    socket.on("close", () => resolve(said)).resume();
  });
}

/** In less, the kernel's answer may not have come through; and 0 would be no limit. */
const leastMs = 20;

/** Removes a claim that is over, as far as that can be done. */
export function removeClaim(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The claim is over all the same: a process that finds its name is refused there, and tries to remove it in turn.
  }
}
