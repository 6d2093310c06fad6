// From the words of the conf to the values of an intent, each read once. Strict: what cannot be read is a problem that names
// the key and the entry.

import { mergeCidrs, readCidr } from "../../redirect/cidr.ts";
import { type ConfList, readConfList, readPortList } from "../../redirect/conf-list.ts";
import type { NumberWord } from "../../redirect/integer.ts";
import { type Read, readAs, type Unreadable } from "../../redirect/list.ts";
import { readGroup, readUser } from "../../redirect/owner.ts";
import { mergePorts, readPort } from "../../redirect/port.ts";
import { printable } from "../../text/printable.ts";
import { readSeconds } from "./duration.ts";
import type { Intent } from "./intent.ts";
import type { LinkerdConf } from "./schema.ts";

/** What the values of the section mean. */
export type ReadValues = {
  /** The intent of a pod that has nothing to say itself; undefined where there are problems. */
  readonly intent: Intent | undefined;
  /** Values that are invalid, one sentence for each key. */
  readonly problems: readonly string[];
  /** What is read otherwise than it is written, one sentence for each key. */
  readonly notes: readonly string[];
};

/** Reads the values of the section. */
export function readValues(conf: LinkerdConf): ReadValues {
  const reader: Reader = { conf, problems: [], notes: [] };
  const inboundPort = required(reader, "incoming-proxy-port", portOf);
  const outboundPort = required(reader, "outgoing-proxy-port", portOf);
  const proxyUid = required(reader, "proxy-uid", userOf);
  const gid = optional(reader, "proxy-gid", groupOf) ?? "none";
  const seconds = optional(reader, "close-wait-timeout", secondsOf) ?? 0;
  const lists = readLists(reader);
  const { problems, notes } = reader;
  const isMissing = inboundPort === undefined || outboundPort === undefined;
  if (problems.length > 0 || isMissing || proxyUid === undefined) {
    return { intent: undefined, problems, notes };
  }
  const intent: Intent = {
    inboundPort,
    outboundPort,
    proxyUid,
    ...(gid === "none" ? {} : { proxyGid: gid }),
    ...(seconds === 0 ? {} : { closeWaitSeconds: seconds }),
    ...lists,
  };
  return { intent, problems, notes };
}

/** The section that is read, and what there is to say of what was found. */
type Reader = {
  readonly conf: LinkerdConf;
  readonly problems: string[];
  readonly notes: string[];
};

type Key =
  | "incoming-proxy-port"
  | "outgoing-proxy-port"
  | "proxy-uid"
  | "proxy-gid"
  | "close-wait-timeout";

type ReadWord<T> = (word: NumberWord) => Read<T> | Unreadable;

function required<T>(reader: Reader, key: Key, read: ReadWord<T>): T | undefined {
  if (reader.conf[key] === undefined) reader.problems.push(`linkerd.${key} is missing`);
  return optional(reader, key, read);
}

function optional<T>({ conf, problems }: Reader, key: Key, read: ReadWord<T>): T | undefined {
  const word = conf[key];
  if (word === undefined) return undefined;
  const result = read(word);
  if ("value" in result) return result.value;
  problems.push(`linkerd.${key}: ${printable(result.problem)}`);
  return undefined;
}

function portOf(word: NumberWord): Read<number> | Unreadable {
  return readPort(String(word));
}

// Every pod's proxy must be exempted, and root must not be.
function userOf(word: NumberWord): Read<number> | Unreadable {
  return readAs(word, readUser(word), "is not a user id (1 to 4294967294)");
}

function groupOf(word: NumberWord): Read<number | "none"> | Unreadable {
  return readAs(word, readGroup(word), "is not a group id (1 to 4294967294, or -1 for none)");
}

function secondsOf(word: NumberWord): Read<number> | Unreadable {
  return readAs(word, readSeconds(String(word)), "is not a duration (like 30s or 1h)");
}

type Lists = Pick<Intent, "onlyInbound" | "excludeInbound" | "excludeOutbound" | "excludeSubnets">;

function readLists(reader: Reader): Lists {
  const { conf } = reader;
  const values = <T>({ values: read, problems, notes }: ConfList<T>): readonly T[] => {
    reader.problems.push(...problems);
    reader.notes.push(...notes);
    return read;
  };
  const ports = (key: "inbound-ports-to-ignore" | "outbound-ports-to-ignore") =>
    mergePorts(values(readPortList(`linkerd.${key}`, conf[key])));
  // Single ports: Linkerd's own list has no ranges.
  const only = conf["ports-to-redirect"].map(String);
  return {
    onlyInbound: sorted(values(readConfList("linkerd.ports-to-redirect", only, readPort))),
    excludeInbound: ports("inbound-ports-to-ignore"),
    excludeOutbound: ports("outbound-ports-to-ignore"),
    excludeSubnets: mergeCidrs(
      values(readConfList("linkerd.subnets-to-ignore", conf["subnets-to-ignore"], readCidr)),
    ),
  };
}

function sorted(ports: readonly number[]): number[] {
  return [...new Set(ports)].toSorted((a, b) => a - b);
}
