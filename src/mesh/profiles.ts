// The meshes that we know. A new mesh is a folder beside linkerd/, and a line here.
import { linkerd } from "./linkerd/profile.ts";
import type { Profile } from "./profile.ts";

const profiles: readonly Profile[] = [linkerd];

/** The mesh of records that name none, and of the conf's section. */
export const defaultProfile: Profile = linkerd;

/** The mesh of this name; undefined for one that this version does not know. */
export function profileNamed(name: string): Profile | undefined {
  return profiles.find((profile) => profile.name === name);
}
