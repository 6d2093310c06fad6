// What a mesh is to us. One folder for each mesh makes one of these, and nothing outside of that folder names the mesh's
// chains, labels or annotations: the conf's reader, upkeep/ and node/ know a mesh by this type alone.
import type { JsonObject } from "../cni/conf.ts";
import type { StandFor } from "../netfilter/compare.ts";
import type { Family, Ruleset } from "../netfilter/table.ts";
import type { PortRange } from "../redirect/port.ts";
import type { Annotations, KnownPod, PodFacts } from "./pod.ts";

/** A mesh: its part of the conf, which pods are its own, and what is redirected for them. */
export type Profile = {
  /** Its name in records, and that of its section in the conf. */
  readonly name: string;
  /** Reads its section of the conf, each value once. Never throws: what is wrong is in the result. */
  readonly readConf: (section: JsonObject) => MeshConf;
  /** An intent as a record keeps it, for these families; undefined where the words are not this mesh's. */
  readonly readIntent: (words: JsonObject, families: readonly Family[]) => Intent | undefined;
  /** Why a pod is not redirected; undefined when it is. By its spec where that is known, else by its annotations. */
  readonly skipReason: (pod: KnownPod) => string | undefined;
  /** True where a pod's own annotations say all, so that its namespace need not be asked. */
  readonly carriesAll: (annotations: Annotations) => boolean;
  /**
   * Whether a pod is of the mesh's own control plane, which reaches the API server without a proxy. `isListed`: its namespace
   * is one that the conf names for control planes, which counts where no spec is known.
   */
  readonly controlPlane: (pod: KnownPod, isListed: boolean) => ControlPlane;
  /** The namespace in which its control plane usually is. */
  readonly controlPlaneNamespace: string;
  /** The annotations by which pods change the redirect, as the conf names them. */
  readonly annotationKeys: readonly string[];
  /** Rulesets with every match and target that pods may get, for trials in an empty netns. */
  readonly trialRulesets: (families: readonly Family[]) => Ruleset[];
  /** Whose rules may stand for ours in an own chain. */
  readonly standFor: StandFor;
  /** The kernel settings that it may change in a netns, by name, with what messages say of each. */
  readonly settings: ReadonlyMap<string, SettingWords>;
};

/** A mesh's section of the conf, read. */
export type MeshConf = {
  /** Keys that cannot be read at all, one sentence each: their defaults stand in their place. */
  readonly faults: readonly string[];
  /** Values that are invalid, one sentence for each key: a pod that is redirected fails for the first, and no other pod does. */
  readonly problems: readonly string[];
  /** What is read otherwise than it is written, one sentence for each key, for the log. */
  readonly notes: readonly string[];
  /** Keys of the section that nobody reads. */
  readonly unknownKeys: readonly string[];
  /** The intent of a pod for these families: by the conf alone, or also by what the pod says. Undefined where there are problems. */
  readonly intentOf: ((families: readonly Family[], said?: Said) => Planned) | undefined;
};

/** What a pod says, and what the node's owner lets it say. */
export type Said = AnnotationPolicy & { readonly facts: PodFacts };

/** What the node's owner lets a pod say. */
export type AnnotationPolicy = {
  /** Annotations (as in `annotationKeys`) that this pod may not set. */
  readonly denied: readonly string[];
  /** What cannot be read is passed over entry by entry, and the good entries count; refused as a whole otherwise. */
  readonly dropEntries: boolean;
  /** Ports of the API server, for a pod of the mesh's own control plane; none for others. */
  readonly apiServerPorts: readonly PortRange[];
};

/** A pod's intent, and what there is to say of it. */
export type Planned = {
  readonly intent: Intent;
  /** Annotations that cannot be honoured; the intent is as without them. */
  readonly refusals: readonly Refusal[];
  /** Sentences about the pod, for the log. */
  readonly notes: readonly string[];
  /** What was asked for, and is seldom meant. */
  readonly warnings: readonly Warning[];
};

/** One annotation that cannot be honoured. */
export type Refusal = { readonly annotation: string; readonly problem: string };

/** A sentence for the log, and the values that it is about. */
export type Warning = { readonly message: string; readonly fields: JsonObject };

/** What shall be redirected for one pod, complete and canonical: made once, and kept in the attachment's record. */
export type Intent = {
  /** In the mesh's own words, as a record keeps them; they do not depend on the families. */
  readonly words: JsonObject;
  /** One for each family that is wanted. */
  readonly rulesets: readonly Ruleset[];
  /** What the netns' kernel settings shall be. */
  readonly settings: readonly Setting[];
};

/** A kernel setting by its dotted name. */
export type Setting = { readonly name: string; readonly value: string };

/** How messages call the wish for a kernel setting ("a close-wait-timeout"), and from where it may come. */
export type SettingWords = { readonly wish: string; readonly source: string };

/** Whether a pod is held to be of the mesh's control plane; `warning` tells of one that may be, and is not. */
export type ControlPlane = { readonly isControlPlane: boolean; readonly warning?: string };

/** The families that an intent redirects. */
export function familiesOf({ rulesets }: Intent): Family[] {
  return rulesets.map(({ family }) => family);
}

/** The same intent for those of its families that the test holds for. */
export function narrowed(intent: Intent, holds: (family: Family) => boolean): Intent {
  return { ...intent, rulesets: intent.rulesets.filter(({ family }) => holds(family)) };
}
