// What a runtime hands over beside the protocol's own keys, where the entry's capabilities ask for it (runtimeConfig).
import { isJsonObject, type JsonObject, member } from "./conf.ts";

/** The capability by which containerd and CRI-O hand over a pod's annotations. */
export const annotationsCapability = "io.kubernetes.cri.pod-annotations";

/** A pod's annotations in a conf; undefined where the runtime sent none, which is not the same as an empty list. */
export function annotationsIn(document: JsonObject): Record<string, string> | undefined {
  const runtimeConfig = member(document, "runtimeConfig")?.value;
  if (!isJsonObject(runtimeConfig)) return undefined;
  const found = member(runtimeConfig, annotationsCapability);
  if (found === undefined) return undefined;
  // containerd sends null for a pod that has none.
  const entries = Object.entries(isJsonObject(found.value) ? found.value : {});
  const texts = entries.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(texts);
}
