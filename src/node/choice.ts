// A backend chosen, with its programs. Edge: the programs are looked for on the node.
import { CniError, errorCode } from "../cni/error.ts";
import { optionNames } from "../conf/names.ts";
import { type Backend, type Family, families } from "../netfilter/table.ts";
import { plainName, type Toolbox, type Tools, versionTimeoutMs } from "./toolbox.ts";

/** A backend with its programs, for those of the wanted families that it has any for, and why it was chosen. */
export type BackendChoice = {
  readonly backend: Backend;
  readonly reason: string;
  readonly tools: ReadonlyMap<Family, Tools>;
  /** Why a wanted family has none. */
  readonly lacking: ReadonlyMap<Family, CniError>;
};

/** What was decided, and the families that the choice is nothing without: of these an error speaks first. */
export type Decided = Pick<BackendChoice, "backend" | "reason"> & {
  readonly required?: readonly Family[];
};

type Found = readonly (readonly [Family, Tools | undefined])[];

/**
 * The choice with its programs.
 * @throws CniError 101 when the node has them for none of the families; 11 when that is not known.
 */
export async function equip(
  toolbox: Toolbox,
  decided: Decided,
  wanted: readonly Family[],
): Promise<BackendChoice> {
  const { backend } = decided;
  const found: Found = await Promise.all(
    wanted.map(async (family) => [family, await toolbox.find(backend, family)] as const),
  );
  const plain = await plainOnes(toolbox, withoutTools(found));
  return complete(decided, found, (lacking) => missing(backend, lacking, plain));
}

/** The choice of the plain names: of whichever backend they are. @throws CniError as above. */
export async function equipPlain(
  toolbox: Toolbox,
  wanted: readonly Family[],
  required: readonly Family[] = [],
): Promise<BackendChoice> {
  const plain = await plainOnes(toolbox, families);
  const there = wanted.flatMap((family) => plain.get(family)?.backend ?? []);
  const backend = there[0] ?? "legacy";
  const found = wanted.map((family) => {
    const one = plain.get(family);
    return [family, one?.backend === backend ? one.tools : undefined] as const;
  });
  const decided = { backend, reason: `the plain iptables is ${backend}`, required };
  return complete(decided, found, (lacking) => missing("plain", lacking, plain));
}

/** The programs of a choice for one of the families. @throws CniError as above when it has none. */
export function toolsFor(choice: BackendChoice, family: Family): Tools {
  const tools = choice.tools.get(family);
  if (tools === undefined) {
    throw choice.lacking.get(family) ?? missing(choice.backend, [family], new Map());
  }
  return tools;
}

function complete(
  { backend, reason, required = [] }: Decided,
  found: Found,
  why: (lacking: readonly Family[]) => CniError,
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

type PlainOnes = ReadonlyMap<Family, NonNullable<Awaited<ReturnType<Toolbox["findPlain"]>>>>;

async function plainOnes(toolbox: Toolbox, wanted: readonly Family[]): Promise<PlainOnes> {
  const found = await Promise.all(
    wanted.map(async (family) => [family, await toolbox.findPlain(family)] as const),
  );
  return new Map(found.flatMap(([family, one]) => (one === undefined ? [] : [[family, one]])));
}

const install = `install iptables 1.8 or later, or set ${optionNames.backend} to what is there`;
const oneBackend = `the rules of one pod go through one backend: let update-alternatives lead both names to the same, or set ${optionNames.backend} to nft or legacy and install what that lacks`;
const unanswered = `run it by hand to see what it waits for, or set ${optionNames.backend} to nft or legacy and install programs with that in their names`;

// What the plain names are is said: that they are not of this backend does not mean that they are not there.
function missing(name: string, lacking: readonly Family[], plain: PlainOnes): CniError {
  const kind = name === "plain" ? "under the plain names" : `of backend ${name}`;
  const what = `no iptables programs ${kind} for ${lacking.join(" and ")} on the node`;
  const told = [...plain].map(([family, { backend }]) =>
    backend === undefined
      ? `${plainName(family)} gave no answer to --version in ${versionTimeoutMs / 1_000} s, so its backend is not known`
      : `${plainName(family)} is ${backend}`,
  );
  const isUnknown = lacking.some((family) => {
    return plain.has(family) && plain.get(family)?.backend === undefined;
  });
  if (isUnknown) {
    const message = name === "plain" ? told.join(" and ") : `${what}: ${told.join(" and ")}`;
    return new CniError(errorCode.tryAgainLater, message, { details: unanswered });
  }
  const isOther = lacking.some((family) => plain.has(family));
  if (isOther && name === "plain") {
    return new CniError(errorCode.restoreRejected, told.join(" and "), { details: oneBackend });
  }
  return new CniError(
    errorCode.restoreRejected,
    isOther ? `${what}: ${told.join(" and ")}` : what,
    {
      details: install,
    },
  );
}
