// A backend chosen, with its programs. Edge: the programs are looked for on the node.
import { optionNames } from "../conf/names.ts";
import { Fault } from "../fault.ts";
import { othersThan } from "../netfilter/backend.ts";
import { type BackendChoice, noTools, type Tools } from "../netfilter/iptables/tools.ts";
import { type Backend, type Family, families } from "../netfilter/table.ts";
import { type Programs, plainName, versionTimeoutMs } from "./programs.ts";

/** What was decided, and the families that the choice is nothing without: of these an error speaks first. */
export type Decided = Pick<BackendChoice, "backend" | "reason"> & {
  readonly required?: readonly Family[];
};

/** Families that are wanted, and those that must be served where they are. */
export type Wanting = { readonly wanted: readonly Family[]; readonly required: readonly Family[] };

type Found = readonly (readonly [Family, Tools | undefined])[];

/**
 * The choice with its programs.
 * @throws Fault rejected when the node has them for none of the families; try-again when that is not known.
 */
export async function equip(
  programs: Programs,
  decided: Decided,
  wanted: readonly Family[],
): Promise<BackendChoice> {
  const { backend } = decided;
  const found: Found = await Promise.all(
    wanted.map(async (family) => [family, await programs.find(backend, family)] as const),
  );
  const plain = await plainOnes(programs, withoutTools(found));
  return complete(decided, found, (lacking) => missing(backend, lacking, plain));
}

/** The first other backend that has programs for all families that must be served; undefined where none has, or none says. */
export async function equipOther(
  programs: Programs,
  { than, reason }: { readonly than: Backend; readonly reason: string },
  { wanted, required }: Wanting,
): Promise<BackendChoice | undefined> {
  for (const backend of othersThan(than)) {
    const found = await unlessLacking(equip(programs, { backend, reason }, wanted));
    if (found === undefined) continue;
    if (wanted.every((family) => found.tools.has(family) || !required.includes(family)))
      return found;
  }
  return undefined;
}

// The error of the backend that was meant first says more.
async function unlessLacking(choice: Promise<BackendChoice>): Promise<BackendChoice | undefined> {
  try {
    return await choice;
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

/** The choice of the plain names: of whichever backend they are. @throws Fault as above. */
export async function equipPlain(
  programs: Programs,
  wanted: readonly Family[],
  required: readonly Family[] = [],
): Promise<BackendChoice> {
  const plain = await plainOnes(programs, families);
  const there = wanted.flatMap((family) => plain.get(family)?.backend ?? []);
  const backend = there[0] ?? "legacy";
  const found = wanted.map((family) => {
    const one = plain.get(family);
    return [family, one?.backend === backend ? one.tools : undefined] as const;
  });
  const decided = { backend, reason: `the plain iptables is ${backend}`, required };
  return complete(decided, found, (lacking) => missing("plain", lacking, plain));
}

function complete(
  { backend, reason, required = [] }: Decided,
  found: Found,
  why: (lacking: readonly Family[]) => Fault,
): BackendChoice {
  const there = found.flatMap(([family, tools]): [Family, Tools][] =>
    tools === undefined ? [] : [[family, tools]],
  );
  const lacking = withoutTools(found);
  if (there.length === 0) {
    const needed = lacking.filter((family) => required.includes(family));
    throw why(needed.length > 0 ? needed : lacking);
  }
  return {
    backend,
    reason,
    tools: new Map(there),
    lacking: new Map(lacking.map((family) => [family, why([family])])),
  };
}

function withoutTools(found: Found): Family[] {
  return found.filter(([, tools]) => tools === undefined).map(([family]) => family);
}

type PlainOnes = ReadonlyMap<Family, NonNullable<Awaited<ReturnType<Programs["findPlain"]>>>>;

async function plainOnes(programs: Programs, wanted: readonly Family[]): Promise<PlainOnes> {
  const found = await Promise.all(
    wanted.map(async (family) => [family, await programs.findPlain(family)] as const),
  );
  return new Map(found.flatMap(([family, one]) => (one === undefined ? [] : [[family, one]])));
}

const installAdvice = `install iptables 1.8 or later, or set ${optionNames.backend} to what is there`;
const oneBackend = `the rules of one pod go through one backend: let update-alternatives lead both names to the same, or set ${optionNames.backend} to nft or legacy and install what that lacks`;
const unanswered = `run it by hand to see what it waits for, or set ${optionNames.backend} to nft or legacy and install programs with that in their names`;

// What the plain names are is said: that they are not of this backend does not mean that they are not there.
function missing(name: string, lacking: readonly Family[], plain: PlainOnes): Fault {
  const kind = name === "plain" ? "under the plain names" : `of backend ${name}`;
  const none = noTools(kind, lacking);
  const told = [...plain].map(([family, { backend }]) =>
    backend === undefined
      ? `${plainName(family)} gave no answer to --version in ${versionTimeoutMs / 1_000} s, so its backend is not known`
      : `${plainName(family)} is ${backend}`,
  );
  const isUnknown = lacking.some((family) => {
    return plain.has(family) && plain.get(family)?.backend === undefined;
  });
  if (isUnknown) {
    const message = name === "plain" ? told.join(" and ") : `${none}: ${told.join(" and ")}`;
    return new Fault("try-again", message, { details: unanswered });
  }
  const isOther = lacking.some((family) => plain.has(family));
  if (isOther && name === "plain") {
    return new Fault("rejected", told.join(" and "), { details: oneBackend });
  }
  const message = isOther ? `${none}: ${told.join(" and ")}` : none;
  return new Fault("rejected", message, { details: installAdvice });
}
