// The keys of the plugin conf that are no mesh's, as a user writes them. One schema for each section is the source of the
// types, of the defaults, and of README's table (a test holds it against these); a mesh's own keys are in its folder.
import * as z from "zod/mini";
import { defaultProfile } from "../mesh/profiles.ts";
import { readInteger } from "../redirect/integer.ts";

const text = z.string();
const names = z.array(text);
const flag = z._default(z.boolean(), false);
/** Numbers as users write them: 443 or "443". */
const number = z.union([z.number(), text]);
/** A number that is used as it is; what is none is left for the check of the bounds to refuse. */
const wholeNumber = z.pipe(
  number,
  z.transform((word) => readInteger(word, { least: 0, most: Number.MAX_SAFE_INTEGER }) ?? word),
);

/** At the top of the conf. */
export const topSchema = z.object({
  log_level: z._default(text, "info"),
  log_file: z._default(text.check(z.regex(/^(?:\/|$)/, "expected an absolute path")), ""),
});

/** In the mesh's section, where linkerd-cni has them. `use-wait-flag` is taken and not read: we always wait. */
export const sharedSchema = z.object({
  simulate: flag,
  "use-wait-flag": flag,
  "iptables-mode": z._default(z.enum(["auto", "nft", "legacy", "plain", ""]), "auto"),
  ipv6: flag,
});

export const kubernetesSchema = z.object({ kubeconfig: z._default(text, "") });

export const sluiceSchema = z.object({
  "pod-source": z.optional(z.enum(["auto", "annotations", "api"])),
  // No default: a list that is written counts for more than the usual one (upkeep/pod/facts.ts).
  "exclude-namespaces": z.optional(names),
  "control-plane-namespace": z._default(
    z.union([text, names]),
    defaultProfile.controlPlaneNamespace,
  ),
  "api-server-ports": z._default(z.array(number), [443, 6443]),
  "agent-pod": z.optional(z.object({ namespace: text, "name-prefix": text })),
  // Misspelt, it would deny nothing.
  "deny-annotations": z._default(
    z.record(text, z.array(z.enum(defaultProfile.annotationKeys))),
    {},
  ),
  "on-invalid-annotation": z._default(z.enum(["reject", "warn", "drop-entries"]), "reject"),
  "state-dir": z._default(
    text.check(z.refine(isAbsolutePath, "expected an absolute path")),
    "/run/sluice",
  ),
  "timeout-seconds": z.prefault(
    z.pipe(wholeNumber, z.int().check(z.minimum(1), z.maximum(110))),
    20,
  ),
});

// As the kernel takes them: with no NUL in it, and of at most 4,095 bytes.
function isAbsolutePath(path: string): boolean {
  return path.startsWith("/") && !path.includes("\0") && path.length < 4_096;
}

/** The `sluice` object as it is written, with its defaults. */
export type SluiceConf = z.output<typeof sluiceSchema>;
