// Finds keys at the top of the conf that neither we nor others read.
import type { JsonObject } from "../cni/conf.ts";
import { topSchema } from "./schema.ts";

/** What a conf list's entry may hold besides: the protocol's keys, which are others' to judge. */
const protocolKeys = [
  "cniVersion",
  "cniVersions",
  "name",
  "type",
  "capabilities",
  "runtimeConfig",
  "prevResult",
  "args",
  "ipam",
  "dns",
  "ipMasq",
];

/** Keys at the top that are neither the protocol's nor ours. `mesh` names the mesh's section. */
export function strangersAtTop(document: JsonObject, mesh: string): string[] {
  const known = [...protocolKeys, ...Object.keys(topSchema.shape), mesh, "kubernetes", "sluice"];
  return Object.keys(document).filter((key) => {
    return !key.startsWith("cni.dev/") && !known.includes(key);
  });
}

/** Not worth a warning: linkerd-cni declares it, and never reads it. */
export const neverRead = "kubernetes.k8s_api_root";
