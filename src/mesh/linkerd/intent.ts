// What shall be redirected for one pod, in Linkerd's words: made once on ADD, kept in the attachment's record, and the only
// thing that a ruleset is built from. So ADD, CHECK, DEL and repair cannot mean different things.
import * as z from "zod/mini";
import { families } from "../../netfilter/table.ts";

const port = z.int().check(z.minimum(1), z.maximum(65535));
const id = z.int().check(z.minimum(1), z.maximum(4_294_967_294));
const ranges = z.readonly(z.array(z.object({ from: port, to: port })));

/** The schema reads intents back from records; an intent in memory is already of this shape. */
export const intentSchema = z.object({
  /** Where the proxy listens for what comes in, and for what goes out. */
  inboundPort: port,
  outboundPort: port,
  /** Whose traffic is the proxy's own. */
  proxyUid: id,
  proxyGid: z.optional(id),
  /** The netns' conntrack timeout for half-closed connections; not set: the kernel's own. */
  closeWaitSeconds: z.optional(z.int().check(z.minimum(1))),
  /** Inbound ports that are redirected; none named: all. Sorted. */
  onlyInbound: z.array(port),
  /** Ports that are not redirected: merged (redirect/port.mergePorts). */
  excludeInbound: ranges,
  excludeOutbound: ranges,
  /** Sources whose traffic is not redirected when it comes in: canonical and sorted (redirect/cidr.mergeCidrs). */
  excludeSubnets: z.array(
    z.object({
      family: z.enum(families),
      text: z.string().check(z.regex(/^[0-9a-f:.]+\/[0-9]+$/)),
    }),
  ),
});

export type Intent = z.infer<typeof intentSchema>;
