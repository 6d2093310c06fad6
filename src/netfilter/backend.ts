// Decides through which backend a pod's rules are written, and with which programs. Edge only in what it is given to
// look with; the decision and its reason go to the log and the record.
import { CniError, errorCode } from "../cni/error.ts";
import { type Backend, backends, type Family } from "./table.ts";
import { type FindProgram, findPlainTools, findTools, type Tools } from "./tools.ts";

export type BackendMode = "auto" | "nft" | "legacy" | "plain";

/** A backend, why it was taken, and its programs for each family asked for. */
export type BackendChoice = {
  readonly backend: Backend;
  readonly reason: string;
  readonly tools: ReadonlyMap<Family, Tools>;
};

/** The programs of a choice for one of the families that it was made for. */
export function toolsFor(choice: BackendChoice, family: Family): Tools {
  const tools = choice.tools.get(family);
  if (tools === undefined) throw missing(choice.backend, [family]);
  return tools;
}

/**
 * The backend for these families.
 * @throws CniError 101 when the programs are not on the node.
 */
export function chooseBackend(
  mode: BackendMode,
  wanted: readonly Family[],
  find: FindProgram,
): BackendChoice {
  if (mode === "plain") return choosePlain(wanted, find);
  if (mode !== "auto") return useBackend(mode, wanted, find);
  for (const backend of backends) {
    const tools = toolsOf(backend, wanted, find);
    if (tools !== undefined) return { backend, tools, reason: `${backend} tools are on the node` };
  }
  throw missing("nft or legacy", wanted);
}

/** A backend that is already decided, by the conf or by the record. */
export function useBackend(
  backend: Backend,
  wanted: readonly Family[],
  find: FindProgram,
): BackendChoice {
  const tools = toolsOf(backend, wanted, find);
  if (tools === undefined) throw missing(backend, wanted);
  return { backend, tools, reason: "named" };
}

function choosePlain(wanted: readonly Family[], find: FindProgram): BackendChoice {
  const found = wanted.map((family) => ({ family, plain: findPlainTools(find, family) }));
  const backend = found[0]?.plain?.backend;
  const tools = found.flatMap(({ family, plain }): [Family, Tools][] =>
    plain === undefined || plain.backend !== backend ? [] : [[family, plain.tools]],
  );
  if (backend === undefined || tools.length < wanted.length) throw missing("plain", wanted);
  return { backend, tools: new Map(tools), reason: `the plain iptables is ${backend}` };
}

function toolsOf(
  backend: Backend,
  wanted: readonly Family[],
  find: FindProgram,
): ReadonlyMap<Family, Tools> | undefined {
  const found = wanted.flatMap((family): [Family, Tools][] => {
    const tools = findTools(find, backend, family);
    return tools === undefined ? [] : [[family, tools]];
  });
  return found.length === wanted.length ? new Map(found) : undefined;
}

function missing(backend: string, wanted: readonly Family[]): CniError {
  return new CniError(
    errorCode.restoreRejected,
    `no iptables programs of backend ${backend} for ${wanted.join(" and ")} on the node`,
    { details: "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there" },
  );
}
