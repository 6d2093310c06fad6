// Records of format 1, which 0.1.0 and what came soon after it wrote: of Linkerd, in nat alone, with one kernel setting. Pure.
// They are turned into today's when they are read, and stay as they are on disk until the attachment is written anew.
import * as z from "zod/mini";
import { defaultProfile, rulesetOfFormat1 } from "../mesh/profiles.ts";
import { backends, families } from "../netfilter/table.ts";
import type { AttachmentRecord, RecordedSetting } from "./record.ts";

const text = z.string();
const number = z.number();

const ruleset1Schema = z.object({
  family: z.enum(families),
  chains: z.array(
    z.object({
      name: text,
      hook: z.enum(["PREROUTING", "OUTPUT"]),
      jump: text,
      rules: z.array(text),
    }),
  ),
});

/** What 0.1.0 did not write is optional. */
const record1Schema = z.object({
  format: z.literal(1),
  state: z.optional(z.enum(["intended", "applied"])),
  network: text,
  containerId: text,
  ifName: text,
  pod: z.object({ namespace: text, name: text }),
  netns: z.object({ path: text, device: number, inode: number }),
  boot: z.exactOptional(text),
  sinceBootMs: z.exactOptional(number),
  /** What the netns' close-wait setting was before the first of us changed it. */
  closeWaitBefore: z.optional(text),
  /** In the words of the mesh, with the families that are redirected. */
  intent: z.looseObject({ families: z.array(z.enum(families)).check(z.minLength(1)) }),
  open: z.exactOptional(z.array(z.enum(families))),
  rulesets: z.array(ruleset1Schema).check(z.minLength(1)),
  backend: z.enum(backends),
  backendReason: text,
  time: text,
  version: text,
});

type Record1 = z.infer<typeof record1Schema>;

/** Reads a record of format 1; undefined where it is none. */
export function readFormat1(value: unknown): AttachmentRecord | undefined {
  const { success, data } = z.safeParse(record1Schema, value);
  if (!success) return undefined;
  const settings = settingsOf(data);
  if (settings === undefined) return undefined;
  const { state = "applied", closeWaitBefore: _, intent, rulesets, ...kept } = data;
  const { families: __, ...words } = intent;
  return {
    ...kept,
    format: 2,
    state,
    profile: defaultProfile.name,
    intent: words,
    rulesets: rulesets.map(rulesetOfFormat1),
    settings,
    tools: [],
    warnings: [],
  };
}

// Undefined where the intent is none of the mesh's.
function settingsOf({ intent, closeWaitBefore }: Record1): RecordedSetting[] | undefined {
  const { families: wanted, ...words } = intent;
  const meant = defaultProfile.readIntent(words, wanted);
  if (meant === undefined) return undefined;
  const before = closeWaitBefore === undefined ? {} : { before: closeWaitBefore };
  const wished = meant.settings.map((setting) => ({ ...setting, ...before }));
  if (wished.length > 0 || closeWaitBefore === undefined) return wished;
  return [...defaultProfile.settings.keys()].map((name) => ({ name, ...before }));
}
