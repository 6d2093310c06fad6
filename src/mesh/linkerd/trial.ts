// An intent whose rules have every match and target that pods may get, whatever the conf says: its values are another question.
import type { Intent } from "./intent.ts";

/** For trials in an empty netns. */
export const trialIntent: Intent = {
  inboundPort: 4143,
  outboundPort: 4140,
  proxyUid: 2102,
  proxyGid: 2102,
  onlyInbound: [],
  excludeInbound: [{ from: 1, to: 2 }],
  excludeOutbound: [{ from: 3, to: 3 }],
  excludeSubnets: [
    { family: "ipv4", text: "192.0.2.0/24" },
    { family: "ipv6", text: "2001:db8::/32" },
  ],
};
