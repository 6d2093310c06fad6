// Reads the plugin conf: JSON document -> settings. The only reader of its keys; called once, when a command begins.
import type * as z from "zod/mini";
import type { JsonObject } from "../cni/conf.ts";
import { readSection, type Section } from "../cni/section.ts";
import { defaultProfile } from "../mesh/profiles.ts";
import { families } from "../netfilter/table.ts";
import { readPortList } from "../redirect/conf-list.ts";
import { readPart, requiredPartIn, withoutNulls } from "./given.ts";
import { podSettings } from "./pods.ts";
import { kubernetesSchema, sharedSchema, sluiceSchema, topSchema } from "./schema.ts";
import type { Settings } from "./settings.ts";
import { neverRead, strangersAtTop } from "./strangers.ts";

/** The settings of a conf. Never throws: what is wrong is in the result, and defaults stand in its place. */
export function readSettings(document: JsonObject): Settings {
  const given = withoutNulls(document);
  const top = readSection(topSchema, given, "");
  const { profile, mesh, shared } = readMesh(given);
  const kubernetes = readPart(given, "kubernetes", kubernetesSchema);
  const sluice = readPart(given, "sluice", sluiceSchema);
  const apiServerPorts = readPortList("sluice.api-server-ports", sluice.values["api-server-ports"]);
  const mode = shared.values["iptables-mode"];
  return {
    log: { level: top.values.log_level, file: top.values.log_file },
    stateDir: sluice.values["state-dir"],
    timeoutMs: sluice.values["timeout-seconds"] * 1_000,
    backend: mode === "" ? "auto" : mode,
    families: shared.values.ipv6 ? families : ["ipv4"],
    simulate: shared.values.simulate,
    pods: podSettings({
      sluice: sluice.values,
      kubernetes: given["kubernetes"] === undefined ? undefined : kubernetes.values,
      apiServerPorts,
    }),
    profile,
    mesh,
    // In the order in which README has the keys.
    faults: [top, mesh, shared, kubernetes, sluice].flatMap(({ faults }) => faults),
    notes: [...mesh.notes, ...apiServerPorts.notes],
    unknownKeys: [
      ...strangersAtTop(document, profile.name),
      ...[mesh, kubernetes, sluice].flatMap(({ unknownKeys }) => unknownKeys),
    ].filter((key) => key !== neverRead),
  };
}

type MeshPart = Pick<Settings, "profile" | "mesh"> & {
  /** The options that stand in the mesh's section, and are no mesh's. */
  readonly shared: Section<z.output<typeof sharedSchema>>;
};

function readMesh(given: JsonObject): MeshPart {
  const profile = defaultProfile;
  const { object, faults } = requiredPartIn(given, profile.name);
  const entries = Object.entries(object);
  const isShared = ([key]: [string, unknown]) => Object.hasOwn(sharedSchema.shape, key);
  const own = Object.fromEntries(entries.filter((entry) => !isShared(entry)));
  const others = Object.fromEntries(entries.filter(isShared));
  const mesh = profile.readConf(own);
  return {
    profile,
    mesh: { ...mesh, faults: [...faults, ...mesh.faults] },
    shared: readSection(sharedSchema, others, `${profile.name}.`),
  };
}
