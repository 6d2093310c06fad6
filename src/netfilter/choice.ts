// A backend chosen, with its programs. Edge: the programs are looked for on the node.
import { CniError, errorCode } from "../cni/error.ts";
import type { Backend, Family } from "./table.ts";
import type { Toolbox, Tools } from "./toolbox.ts";

/** A backend with its programs for each family that it was chosen for, and why it was. */
export type BackendChoice = {
  readonly backend: Backend;
  readonly reason: string;
  readonly tools: ReadonlyMap<Family, Tools>;
};

/**
 * The choice with its programs.
 * @throws CniError 101 when the node lacks one of them.
 */
export async function equip(
  toolbox: Toolbox,
  { backend, reason }: Pick<BackendChoice, "backend" | "reason">,
  wanted: readonly Family[],
): Promise<BackendChoice> {
  const found = await Promise.all(
    wanted.map(async (family) => [family, await toolbox.find(backend, family)] as const),
  );
  return { backend, reason, tools: complete(found, backend) };
}

/** The choice of the plain names: of whichever backend they are. @throws CniError 101 when they are not there. */
export async function equipPlain(
  toolbox: Toolbox,
  wanted: readonly Family[],
): Promise<BackendChoice> {
  const found = await Promise.all(
    wanted.map(async (family) => [family, await toolbox.findPlain(family)] as const),
  );
  const backend = found[0]?.[1]?.backend ?? "legacy";
  const same = found.map(([family, plain]) => {
    return [family, plain?.backend === backend ? plain.tools : undefined] as const;
  });
  return { backend, reason: `the plain iptables is ${backend}`, tools: complete(same, "plain") };
}

/** The programs of a choice for one of the families that it was made for. */
export function toolsFor(choice: BackendChoice, family: Family): Tools {
  const tools = choice.tools.get(family);
  if (tools === undefined) throw missing(choice.backend, [family]);
  return tools;
}

function complete(
  found: readonly (readonly [Family, Tools | undefined])[],
  name: string,
): ReadonlyMap<Family, Tools> {
  const there = found.flatMap(([family, tools]): [Family, Tools][] =>
    tools === undefined ? [] : [[family, tools]],
  );
  const absent = found.filter(([, tools]) => tools === undefined).map(([family]) => family);
  if (absent.length > 0) throw missing(name, absent);
  return new Map(there);
}

function missing(name: string, wanted: readonly Family[]): CniError {
  const kind = name === "plain" ? "under the plain names" : `of backend ${name}`;
  return new CniError(
    errorCode.restoreRejected,
    `no iptables programs ${kind} for ${wanted.join(" and ")} on the node`,
    { details: "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there" },
  );
}
