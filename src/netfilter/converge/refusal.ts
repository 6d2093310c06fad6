// What becomes of tools that refuse: the errors that name program, backend, family and chain, and say what to do.
import { Fault } from "../../fault.ts";
import { type BackendChoice, toolsFor } from "../iptables/tools.ts";
import { isDone, type Progress } from "./progress.ts";

/** The table cannot be shown, so nothing about it can be proven: not a reason to write elsewhere without looking. */
export class UnverifiableError extends Fault {}

/** The tools refused for good, so that another backend may be looked at: it is not so where a table cannot be shown. */
export function isRefusal(error: unknown): boolean {
  const refused = error instanceof Fault && error.kind === "rejected";
  return refused && !(error instanceof UnverifiableError);
}

/** The error for a family that no further try will bring to its ruleset. */
export function rejected(choice: BackendChoice, progress: Progress): Fault {
  const { failure } = progress;
  const kind = failure?.isUnverifiable === true ? UnverifiableError : Fault;
  return new kind("rejected", `${placeOf(choice, progress)} failed: ${failure?.said ?? ""}`, {
    details: failure?.advice || "see the tool's message; nothing of ours is left half-way",
  });
}

/** The error for tries that came to nothing, or to no end. */
export function gaveUp(choice: BackendChoice, all: readonly Progress[], tries: number): Fault {
  const open = all.filter((progress) => !isDone(progress));
  const places = open.map((progress) => placeOf(choice, progress)).join(" and ");
  const failure = open.find((progress) => progress.failure !== undefined)?.failure;
  if (failure === undefined) {
    return new Fault(
      "try-again",
      `${places}: the rules did not stay as written in ${tries} tries`,
      {
        details:
          "another program keeps changing the rules in this netns, or save and restore are not of one version",
      },
    );
  }
  return new Fault("try-again", `${places} failed in ${tries} tries: ${failure.said}`, {
    details: failure.advice || "another program keeps changing the rules in this netns",
  });
}

// Which program, on what: `/usr/sbin/iptables-nft-restore (nft, ipv4, table nat, chain OUTPUT)`.
function placeOf(choice: BackendChoice, { ruleset, failure }: Progress): string {
  const { family } = ruleset;
  const { program, chain } = failure ?? { program: toolsFor(choice, family).restore, chain: "" };
  const inChain = chain === "" ? "" : `, chain ${chain}`;
  const tables = ruleset.tables.map(({ name }) => `table ${name}`).join(", ");
  return `${program} (${choice.backend}, ${family}, ${tables}${inChain})`;
}
