// From the words of the conf to the values of an intent. Strict: what cannot be read is an error that names the key and
// the entry, never a dropped entry (linkerd-cni logs and drops, and a port is proxied that should not be).
import { mergeCidrs, parseCidr } from "../redirect/cidr.ts";
import type { Intent } from "../redirect/intent.ts";
import { mergePorts, type PortRange, parsePort, parsePorts } from "../redirect/port.ts";
import { invalidConf, type LinkerdConf, type SluiceConf } from "./conf.ts";

/** The intent of a pod that has nothing to say itself. `families` comes from its addresses. */
export function intentOfConf(conf: LinkerdConf, families: Intent["families"]): Intent {
  const proxyGid = gid(conf["proxy-gid"]);
  return {
    families,
    inboundPort: proxyPort(conf, "incoming-proxy-port"),
    outboundPort: proxyPort(conf, "outgoing-proxy-port"),
    proxyUid: uid(conf["proxy-uid"]),
    ...(proxyGid === undefined ? {} : { proxyGid }),
    onlyInbound: onlyInbound(conf["ports-to-redirect"]),
    excludeInbound: ports(conf, "inbound-ports-to-ignore"),
    excludeOutbound: ports(conf, "outbound-ports-to-ignore"),
    excludeSubnets: mergeCidrs(
      conf["subnets-to-ignore"].map((entry) =>
        read("linkerd.subnets-to-ignore", () => parseCidr(entry)),
      ),
    ),
  };
}

/** Ports of the API server, for control plane pods where the API does not tell them. */
export function apiServerPorts(conf: SluiceConf): PortRange[] {
  const key = "api-server-ports";
  const found = conf[key].flatMap((entry) =>
    read(`sluice.${key}`, () => parsePorts(String(entry))),
  );
  return mergePorts(found);
}

type NumberWord = number | string | undefined;

function proxyPort(conf: LinkerdConf, key: "incoming-proxy-port" | "outgoing-proxy-port"): number {
  const word = conf[key];
  if (word === undefined) throw invalidConf(`linkerd.${key} is missing`);
  return read(`linkerd.${key}`, () => parsePort(String(word)));
}

// Every pod's proxy must be exempted, and root must not be: half of all containers run as root, and would pass by.
function uid(word: NumberWord): number {
  if (word === undefined) throw invalidConf("linkerd.proxy-uid is missing");
  const value = /^[0-9]{1,10}$/.test(String(word)) ? Number(word) : Number.NaN;
  if (value >= 1 && value <= 4_294_967_294) return value;
  throw invalidConf(
    `linkerd.proxy-uid: ${JSON.stringify(word)} is not a user id (1 to 4294967294)`,
  );
}

// Charts write -1, and older ones 0, for "no group".
function gid(word: NumberWord): number | undefined {
  if (word === undefined || ["0", "-1"].includes(String(word))) return undefined;
  const value = /^[0-9]{1,10}$/.test(String(word)) ? Number(word) : Number.NaN;
  if (value <= 4_294_967_294) return value;
  throw invalidConf(
    `linkerd.proxy-gid: ${JSON.stringify(word)} is not a group id (1 to 4294967294, or -1 for none)`,
  );
}

function onlyInbound(words: readonly (number | string)[]): number[] {
  const found = words.map((word) =>
    read("linkerd.ports-to-redirect", () => parsePort(String(word))),
  );
  return [...new Set(found)].toSorted((a, b) => a - b);
}

function ports(
  conf: LinkerdConf,
  key: "inbound-ports-to-ignore" | "outbound-ports-to-ignore",
): PortRange[] {
  return mergePorts(
    conf[key].flatMap((entry) => read(`linkerd.${key}`, () => parsePorts(String(entry)))),
  );
}

function read<T>(key: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    if (cause instanceof RangeError) throw invalidConf(`${key}: ${cause.message}`);
    throw cause;
  }
}
