// The meshes that we know. A new mesh is a folder beside linkerd/, and a line here.
import type { Ruleset } from "../netfilter/table.ts";
import { fromRuleset1, type Ruleset1 } from "./linkerd/format-1.ts";
import { linkerd } from "./linkerd/profile.ts";
import type { Profile } from "./profile.ts";

const profiles: readonly Profile[] = [linkerd];

/** The mesh of records that name none, and of the conf's section. */
export const defaultProfile: Profile = linkerd;

/** The mesh of this name; undefined for one that this version does not know. */
export function profileNamed(name: string): Profile | undefined {
  return profiles.find((profile) => profile.name === name);
}

/** A ruleset of a record of format 1, which knew one mesh, as rulesets are today. */
export function rulesetOfFormat1(ruleset: Ruleset1): Ruleset {
  return fromRuleset1(ruleset);
}
