// The lock of a netns: who changes rules there holds it, the plugin or a process beside it. Edge.
// Held by a claim (claim.ts), and by nothing that must be renewed: the plugin's event loop stands still while a child works.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Fault } from "../fault.ts";
import {
  awaitEnd,
  type Claim,
  firstClaim,
  makeClaim,
  type OpenDirectory,
  openDirectory,
  removeClaim,
} from "../state/claim.ts";
import { makeDirectory, requireOwnDirectory } from "../state/file.ts";

/** A lock that is held until it is released, or the process ends. Releasing it again does nothing. */
export type Lock = { readonly release: () => void };

/** What is locked, and how long to wait for it. */
export type Wanted = {
  /** Word characters and `-`; the same for all who want it. */
  readonly key: string;
  /** What it is, for people. */
  readonly what: string;
  /** The time left. What is free is taken also with none. */
  readonly remainingMs: () => number;
};

/**
 * Takes the lock, or waits for it without blocking the event loop. The directory is made when it is first needed.
 * @throws Fault `try-again` when another holds it until the time is spent, `io` when the directory takes no locks or is not ours.
 */
export async function takeLock(directory: string, wanted: Wanted): Promise<Lock> {
  const isThere = requireOwnDirectory(directory);
  let open: OpenDirectory | undefined;
  try {
    if (!isThere) makeDirectory(directory);
    open = openDirectory(directory);
    return held(await win(open, wanted), open);
  } catch (error) {
    open?.close();
    throw error instanceof Fault ? error : untakeable(directory, wanted, error);
  }
}

function held(claim: Claim, open: OpenDirectory): Lock {
  let isHeld = true;
  return {
    release: () => {
      if (!isHeld) return;
      isHeld = false;
      claim.release();
      open.close();
    },
  };
}

// A process that has claimed looks afterwards whether another one has, and holds the lock if not. Of two that claim at once, at least
// the one that came second sees the other. The later one gives way, so that one of them is left.
async function win(open: OpenDirectory, wanted: Wanted): Promise<Claim> {
  const startMs = sinceBootMs();
  let claim: Claim | undefined;
  try {
    for (;;) {
      claim ??= await makeClaim(open, nameOf(wanted.key, startMs));
      const { name } = claim;
      const rival = firstClaim(open, `${wanted.key},`, name);
      if (rival === undefined) return claim;
      if (rival < name) {
        claim.release();
        claim = undefined;
      }
      await outlast(open, rival, { ...wanted, startMs });
    }
  } catch (error) {
    claim?.release();
    throw error;
  }
}

type Waiting = Wanted & { readonly startMs: number };

async function outlast(open: OpenDirectory, rival: string, waiting: Waiting): Promise<void> {
  const said = await awaitEnd(open, rival, waiting.remainingMs());
  if (said === "") return;
  if (waiting.remainingMs() <= 0) throw stillHeld(rival, said, waiting);
  await setTimeout(pauseMs);
}

/** Before another look, so that what answers at once does not keep us busy. */
const pauseMs = 10;

// Sorted by the time at which their owners came; never twice the same.
function nameOf(key: string, startMs: number): string {
  const random = Math.random().toString(36).slice(2, 10).padEnd(8, "0");
  return `${key},${startMs.toString(36).padStart(8, "0")}-${random}`;
}

const namePattern = /^\.?[\w-]+,([0-9a-z]+)-[0-9a-z]+(?:\.tmp)?$/;

/** No process of ours holds a lock for so long: the plugin ends after two minutes, whatever happens. */
const oldestMs = 3_600_000;

/**
 * Takes away what killed processes left of their locks, an hour after: for their netns, nobody may come and find it. By the
 * time since boot, since the time of day can be set. Best effort: the next sweep finds what this one cannot remove.
 */
export function sweepLocks(directory: string): void {
  const nowMs = sinceBootMs();
  for (const name of readdirSync(directory)) {
    const startMs = Number.parseInt(namePattern.exec(name)?.[1] ?? "", 36);
    // From the future is what is from before the boot.
    if (Math.abs(nowMs - startMs) > oldestMs) removeClaim(join(directory, name));
  }
}

function sinceBootMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

function stillHeld(rival: string, said: string, { what, startMs }: Waiting): Fault {
  const waitedS = ((sinceBootMs() - startMs) / 1_000).toFixed(1);
  return new Fault("try-again", `${what} is being worked on by another process`, {
    details: `waited ${waitedS} s for its lock (${rival}: ${said}); try again. If it stays so, \`ss -xlp\` shows which process listens there`,
  });
}

function untakeable(directory: string, { what }: Wanted, cause: unknown): Fault {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new Fault("io", `${what} cannot be locked in ${directory}`, {
    details: `${said}; see that there is room, and that its file system takes sockets and root can write there`,
    cause,
  });
}
