// Linkerd, as everything outside of this folder knows it.
import type { JsonObject } from "../../cni/conf.ts";
import { readSection } from "../../cni/section.ts";
import type { MeshConf, Profile } from "../profile.ts";
import { controlPlane } from "./control-plane.ts";
import { configKeys } from "./names.ts";
import { plan, readIntent, settings } from "./plan.ts";
import { isMarked, skipReason } from "./pod.ts";
import { buildRulesets } from "./ruleset.ts";
import { linkerdSchema } from "./schema.ts";
import { standFor } from "./stand-for.ts";
import { trialIntent } from "./trial.ts";
import { readValues } from "./values.ts";

const name = "linkerd";

export const linkerd: Profile = {
  name,
  readConf,
  readIntent,
  skipReason,
  carriesAll: isMarked,
  controlPlane,
  controlPlaneNamespace: "linkerd",
  annotationKeys: configKeys,
  trialRulesets: (families) => buildRulesets(trialIntent, families),
  standFor,
  settings,
};

function readConf(section: JsonObject): MeshConf {
  const { values, faults, unknownKeys } = readSection(linkerdSchema, section, `${name}.`);
  const { intent, problems, notes } = readValues(values);
  return {
    faults,
    problems,
    notes,
    unknownKeys,
    intentOf: intent === undefined ? undefined : (families, said) => plan(intent, families, said),
  };
}
