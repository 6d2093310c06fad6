// What differs in a netns from what was intended for it: in its rules, in its kernel settings, in the families that it speaks.
import { type Drift as RuleDrift, renderDrift as renderRuleDrift } from "../netfilter/compare.ts";
import type { Family } from "../netfilter/table.ts";

export type Drift = RuleDrift | SettingDrift | FamilyDrift;

/** A kernel setting has another value. */
export type SettingDrift = {
  readonly kind: "changed-sysctl";
  /** Its dotted name. */
  readonly setting: string;
  readonly expected: string;
  readonly found: string;
};

/** A family that was left out is spoken by now: nothing takes its traffic to the proxy. */
export type FamilyDrift = {
  readonly kind: "open-family";
  readonly family: Family;
  readonly expected: string;
  /** The address or the route that shows it. */
  readonly found: string;
};

/** One line for a person. */
export function renderDrift(drift: Drift): string {
  if (drift.kind === "changed-sysctl") return renderPlain(drift, drift.setting);
  if (drift.kind === "open-family") return renderPlain(drift, drift.family);
  return renderRuleDrift(drift);
}

function renderPlain({ kind, expected, found }: SettingDrift | FamilyDrift, of: string): string {
  return `${kind} (${of}): expected ${expected}; found ${found}`;
}
