// The conf as the work needs it: each value parsed, once, at the entry (reader.ts). Nothing below a command sees a key of the
// conf.
import type { MeshConf, Profile } from "../mesh/profile.ts";
import type { Family } from "../netfilter/table.ts";
import type { PortRange } from "../redirect/port.ts";

/** How the backend is chosen: found out, named, or the one that the plain program names lead to. */
export type BackendMode = "auto" | "nft" | "legacy" | "plain";

export type Settings = {
  /** A level as it is written, and an absolute path or "". */
  readonly log: { readonly level: string; readonly file: string };
  readonly stateDir: string;
  /** How long a whole command may take. */
  readonly timeoutMs: number;
  readonly backend: BackendMode;
  /** The families that are redirected in pods that have them. */
  readonly families: readonly Family[];
  /** Rules are told to the log, and nothing is written. */
  readonly simulate: boolean;
  readonly pods: PodSettings;
  readonly profile: Profile;
  /** The mesh's own section. */
  readonly mesh: MeshConf;
  /** All that cannot be read, the mesh's keys among it, one sentence each: defaults stand in its place. */
  readonly faults: readonly string[];
  /** What is read otherwise than it is written, anywhere in the conf. */
  readonly notes: readonly string[];
  /** Keys that nobody reads: likely slips of the pen. */
  readonly unknownKeys: readonly string[];
};

/** How pods are known, and what they may say. */
export type PodSettings = {
  /** Undefined where nobody named one. */
  readonly source: "auto" | "annotations" | "api" | undefined;
  /** There where the conf has the section, be it empty: then pods are asked for. `kubeconfig` is "" where it names none. */
  readonly kubernetes: { readonly kubeconfig: string } | undefined;
  /** Undefined where nobody wrote a list. */
  readonly excludedNamespaces: readonly string[] | undefined;
  readonly agent: { readonly namespace: string; readonly namePrefix: string } | undefined;
  readonly controlPlaneNamespaces: readonly string[];
  /** Ports of the API server, for the mesh's control plane where the API does not tell them; merged. */
  readonly apiServerPorts: readonly PortRange[];
  /** Annotations that pods may not set, by namespace; "*" is for namespaces that are not named. */
  readonly denials: Readonly<Record<string, readonly string[]>>;
  /** What becomes of a pod with annotations that cannot be honoured. */
  readonly onInvalid: "reject" | "warn" | "drop-entries";
  /** Values above that are invalid: a pod that says something itself fails for the first, and no other pod does. */
  readonly problems: readonly string[];
};

/** All that is wrong with a conf, one sentence each. */
export function problemsOf({ faults, mesh, pods }: Settings): string[] {
  return [...faults, ...mesh.problems, ...pods.problems];
}
