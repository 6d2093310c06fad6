// From Linkerd's words to what every mesh gives: rulesets and kernel settings for the families that are wanted, and what there
// is to say of the pod.
import * as z from "zod/mini";
import type { JsonObject } from "../../cni/conf.ts";
import type { Family } from "../../netfilter/table.ts";
import type { Intent as AnyIntent, Planned, Said, SettingWords, Warning } from "../profile.ts";
import { applyAnnotations } from "./annotation.ts";
import { type Intent, intentSchema } from "./intent.ts";
import { closeWaitSetting, configPrefix } from "./names.ts";
import { oddities } from "./pod.ts";
import { buildRulesets } from "./ruleset.ts";

/** The intent of a pod by the conf's, and by what the pod says where it may say anything. */
export function plan(conf: Intent, families: readonly Family[], said?: Said): Planned {
  const { intent, refusals, notes } =
    said === undefined
      ? { intent: conf, refusals: [], notes: [] }
      : applyAnnotations(conf, said.facts, said);
  const spec = said?.facts.spec;
  const odd = spec === undefined ? [] : oddities(spec, intent.proxyUid);
  return {
    intent: carriedOut(intent, families),
    refusals,
    notes: [...notes, ...odd],
    warnings: gaps(intent, families),
  };
}

/** An intent as a record keeps it; undefined where these are not Linkerd's words. */
export function readIntent(words: JsonObject, families: readonly Family[]): AnyIntent | undefined {
  const { success, data } = z.safeParse(intentSchema, words);
  return success ? carriedOut(data, families) : undefined;
}

/** The one kernel setting that pods may wish for. */
export const settings: ReadonlyMap<string, SettingWords> = new Map([
  [
    closeWaitSetting,
    {
      wish: "a close-wait-timeout",
      source: `the annotation ${configPrefix}close-wait-timeout, or the conf's`,
    },
  ],
]);

function carriedOut(intent: Intent, families: readonly Family[]): AnyIntent {
  const { closeWaitSeconds: seconds } = intent;
  return {
    words: intent,
    rulesets: buildRulesets(intent, families),
    settings: seconds === undefined ? [] : [{ name: closeWaitSetting, value: String(seconds) }],
  };
}

function gaps({ excludeSubnets }: Intent, families: readonly Family[]): Warning[] {
  const all = excludeSubnets.filter(({ family, text }) => {
    return families.includes(family) && text.endsWith("/0");
  });
  if (all.length === 0) return [];
  const message = "all sources are excluded: what comes in passes the proxy by";
  return [{ message, fields: { subnets: all.map(({ text }) => text) } }];
}
