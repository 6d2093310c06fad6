// The keys of the conf's `linkerd` object that are the mesh's own: linkerd-cni's, with their meaning. Source of their types,
// of their defaults, and of README's table (a test holds it against this); what their values mean is values.ts' business.
import * as z from "zod/mini";

/** Numbers as users write them: 4143 or "4143". */
const number = z.union([z.number(), z.string()]);
const list = z._default(z.array(number), []);
const optionalNumber = z.optional(number);

export const linkerdSchema = z.object({
  "incoming-proxy-port": optionalNumber,
  "outgoing-proxy-port": optionalNumber,
  "proxy-uid": optionalNumber,
  "proxy-gid": optionalNumber,
  "ports-to-redirect": list,
  "inbound-ports-to-ignore": list,
  "outbound-ports-to-ignore": list,
  "subnets-to-ignore": z._default(z.array(z.string()), []),
  "close-wait-timeout": optionalNumber,
});

/** The section as it is written, with its defaults. */
export type LinkerdConf = z.output<typeof linkerdSchema>;
