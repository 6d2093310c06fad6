// Which families may be left out of a convergence, and when: one that the netns does not speak need not be redirected where
// its tools refuse. One that it speaks must be, or everything is taken back.
import { Fault } from "../../fault.ts";
import type { Client } from "../iptables/client.ts";
import type { Place } from "../iptables/job.ts";
import { isSpoken, type Presence } from "../iptables/presence.ts";
import { type BackendChoice, toolsFor } from "../iptables/tools.ts";
import type { Family } from "../table.ts";
import { isDone, type Progress } from "./progress.ts";
import { gaveUp } from "./refusal.ts";

/** Where, with what, and in what time work is done. */
export type Session = {
  readonly client: Client;
  readonly place: Place;
  readonly choice: BackendChoice;
  /** Milliseconds left for everything together. */
  readonly remainingMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  /**
   * The families that must end redirected whatever the netns has; those that it speaks must besides. Of the others, one that
   * the tools refuse is left out. Not given: all must.
   */
  readonly required?: readonly Family[];
  /** Told before converging throws: whether the place is known to be as it was. */
  readonly tookBack?: (isAsBefore: boolean) => void;
};

/** All families on their way, and what the last child saw of the netns. */
export type Round = {
  readonly session: Session;
  readonly all: readonly Progress[];
  presence: Presence | undefined;
};

/** A family that was left out, and why: its tools refused; no reason: IPv6 is not possible in the netns. */
export type Left = { readonly family: Family; readonly error?: Fault };

/** True for a family whose job is to be done only where the netns can speak it at all. */
export function mayBeAbsent({ required, place }: Session, family: Family): boolean {
  const isPod = place !== "scratch" && place !== "host";
  return family === "ipv6" && isPod && required?.includes(family) === false;
}

/**
 * Leaves out the families that have no programs. Whether that may be is known when the netns was looked at (requireSpoken).
 * @throws Fault rejected or try-again (see equip) where it is known before.
 */
export function leaveUnequipped(round: Round): void {
  const { choice, required } = round.session;
  for (const progress of round.all) {
    const { family } = progress.ruleset;
    if (choice.tools.has(family)) continue;
    const error = choice.lacking.get(family);
    if (error === undefined || required?.includes(family) !== false) toolsFor(choice, family);
    progress.left = error;
  }
}

/**
 * Judges what was left out by what the netns has.
 * @throws Fault the reason of a family that was left out although the netns speaks it.
 */
export function requireSpoken(round: Round): void {
  for (const progress of round.all) {
    const { left, ruleset } = progress;
    if (!(left instanceof Fault)) continue;
    if (isNeeded(round, ruleset.family)) throw left;
    // That there are no programs for it does not matter then.
    if (ruleset.family === "ipv6" && round.presence?.ipv6Possible === false) {
      progress.left = "absent";
    }
  }
}

// A family that must end redirected, as far as the netns was looked at.
function isNeeded({ session, presence }: Round, family: Family): boolean {
  const { required, place } = session;
  if (required === undefined || required.includes(family)) return true;
  return place !== "scratch" && isSpoken(presence, family);
}

/**
 * Nothing in place at all is not "left out": the pod's traffic would pass by, whatever comes later.
 * @throws Fault the first reason, where all were left out.
 */
export function requireOne(all: readonly Progress[]): void {
  const refusal = all.find(({ left }) => left instanceof Fault)?.left;
  if (refusal instanceof Fault && all.every(({ left }) => left !== undefined)) throw refusal;
}

/**
 * No more tries: families that were refused again and again, and need not be redirected, are left out.
 * @throws Fault try-again where another has not come to its end.
 */
export function giveUp(round: Round, tries: number): void {
  const { session, all } = round;
  const open = all.filter((progress) => !isDone(progress));
  const mayNotBeLeft = open.filter(({ failure, ruleset }) => {
    return failure === undefined || isNeeded(round, ruleset.family);
  });
  if (mayNotBeLeft.length > 0) throw gaveUp(session.choice, mayNotBeLeft, tries);
  for (const progress of open) progress.left = gaveUp(session.choice, [progress], tries);
}
