// The programs that a backend is worked through. Which there are on a node is found out elsewhere (node/choice.ts).
import { Fault } from "../../fault.ts";
import type { Backend, Family } from "../table.ts";

/** The pair of programs that writes and reads one family through one backend. */
export type Tools = {
  readonly restore: string;
  readonly save: string;
  /** Whether restore knows --wait (1.6.2 and later). */
  readonly waits: boolean;
};

/** A backend with its programs, for those of the wanted families that it has any for, and why it was chosen. */
export type BackendChoice = {
  readonly backend: Backend;
  readonly reason: string;
  readonly tools: ReadonlyMap<Family, Tools>;
  /** Why a wanted family has none. */
  readonly lacking: ReadonlyMap<Family, Fault>;
};

/** The programs of a choice for one of the families. @throws Fault of kind rejected or try-again when it has none. */
export function toolsFor({ backend, tools, lacking }: BackendChoice, family: Family): Tools {
  const found = tools.get(family);
  if (found !== undefined) return found;
  throw lacking.get(family) ?? new Fault("rejected", noTools(`of backend ${backend}`, [family]));
}

/** Says that the node has no programs of a kind for these families. */
export function noTools(kind: string, families: readonly Family[]): string {
  return `no iptables programs ${kind} for ${families.join(" and ")} on the node`;
}
