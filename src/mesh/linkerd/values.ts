// From the words of the conf to the values of an intent. Strict: what cannot be read is an error that names the key and
// the entry, never a dropped entry (linkerd-cni logs and drops, and a port is proxied that should not be). Only an empty
// entry, a slip of a template that can mean nothing else, is passed over with a note.

import {
  invalidConf,
  type LinkerdConf,
  type PluginConf,
  type SluiceConf,
} from "../../conf/conf.ts";
import { type Cidr, mergeCidrs, readCidr } from "../../redirect/cidr.ts";
import type { NumberWord } from "../../redirect/integer.ts";
import { type ReadList, readList, trimBlanks } from "../../redirect/list.ts";
import { readGroup, readUser } from "../../redirect/owner.ts";
import { mergePorts, type PortRange, readPort, readPorts } from "../../redirect/port.ts";
import { printable } from "../../text/printable.ts";
import { few } from "../../text/telling.ts";
import { readSeconds } from "./duration.ts";
import type { Intent } from "./intent.ts";

/**
 * The intent of a pod that has nothing to say itself. `families` comes from its addresses.
 * @throws CniError 7 for the first value that cannot be meant.
 */
export function intentOfConf(conf: LinkerdConf, families: Intent["families"]): Intent {
  return judged(() => readIntent(conf, families));
}

function readIntent(conf: LinkerdConf, families: Intent["families"]): Intent {
  const proxyGid = gid(conf["proxy-gid"]);
  const closeWaitSeconds = closeWait(conf["close-wait-timeout"]);
  return {
    families,
    inboundPort: proxyPort(conf, "incoming-proxy-port"),
    outboundPort: proxyPort(conf, "outgoing-proxy-port"),
    proxyUid: uid(conf["proxy-uid"]),
    ...(proxyGid === undefined ? {} : { proxyGid }),
    ...(closeWaitSeconds === undefined ? {} : { closeWaitSeconds }),
    onlyInbound: [...new Set(valuesOf(onlyPorts(conf)))].toSorted((a, b) => a - b),
    excludeInbound: mergePorts(valuesOf(ports(conf, "inbound-ports-to-ignore"))),
    excludeOutbound: mergePorts(valuesOf(ports(conf, "outbound-ports-to-ignore"))),
    excludeSubnets: mergeCidrs(valuesOf(subnets(conf))),
  };
}

/** Ports of the API server, for control plane pods where the API does not tell them. Throws CniError 7. */
export function apiServerPorts(conf: SluiceConf): PortRange[] {
  return mergePorts(judged(() => valuesOf(ownPorts(conf))));
}

/** What is read otherwise than it is written: one sentence each, for the log. */
export function notesOfConf({ linkerd, sluice }: PluginConf): string[] {
  return [...linkerdLists(linkerd), ownPorts(sluice)].flatMap(({ key, empty, notes }) => {
    const dropped = empty === 0 ? [] : ["an empty entry is passed over"];
    const told = [...dropped, ...notes.map((text) => printable(text))];
    return told.length === 0 ? [] : [`${key}: ${few(told)}`];
  });
}

/** All values that cannot be meant, one sentence a key; a pod that is redirected fails for the first. */
export function problemsOfConf({ linkerd, sluice }: PluginConf): string[] {
  const readings = [
    () => proxyPort(linkerd, "incoming-proxy-port"),
    () => proxyPort(linkerd, "outgoing-proxy-port"),
    () => uid(linkerd["proxy-uid"]),
    () => gid(linkerd["proxy-gid"]),
    () => closeWait(linkerd["close-wait-timeout"]),
    ...[...linkerdLists(linkerd), ownPorts(sluice)].map((keyed) => () => valuesOf(keyed)),
  ];
  return readings.flatMap(problemOf);
}

function problemOf(reading: () => unknown): string[] {
  try {
    reading();
    return [];
  } catch (error) {
    if (error instanceof RangeError) return [error.message];
    throw error;
  }
}

function judged<T>(reading: () => T): T {
  try {
    return reading();
  } catch (error) {
    if (error instanceof RangeError) throw invalidConf(error.message);
    throw error;
  }
}

function proxyPort(conf: LinkerdConf, key: "incoming-proxy-port" | "outgoing-proxy-port"): number {
  const word = conf[key];
  if (word === undefined) throw new RangeError(`linkerd.${key} is missing`);
  const result = readPort(String(word));
  if ("value" in result) return result.value;
  throw new RangeError(`linkerd.${key}: ${printable(result.problem)}`);
}

// Every pod's proxy must be exempted, and root must not be.
function uid(word: NumberWord | undefined): number {
  if (word === undefined) throw new RangeError("linkerd.proxy-uid is missing");
  const value = readUser(word);
  if (value !== undefined) return value;
  throw unmeant("proxy-uid", word, "is not a user id (1 to 4294967294)");
}

function gid(word: NumberWord | undefined): number | undefined {
  if (word === undefined) return undefined;
  const value = readGroup(word);
  if (value !== undefined) return value === "none" ? undefined : value;
  throw unmeant("proxy-gid", word, "is not a group id (1 to 4294967294, or -1 for none)");
}

function closeWait(word: NumberWord | undefined): number | undefined {
  if (word === undefined) return undefined;
  const value = readSeconds(String(word));
  if (value !== undefined) return value === 0 ? undefined : value;
  throw unmeant("close-wait-timeout", word, "is not a duration (like 30s or 1h)");
}

function unmeant(key: string, word: NumberWord, problem: string): RangeError {
  return new RangeError(`linkerd.${key}: ${printable(`${JSON.stringify(word)} ${problem}`)}`);
}

/** A list of the conf, with how it is named to its author, and how many of its entries are empty. */
type Keyed<T> = ReadList<T> & { readonly key: string; readonly empty: number };

function readKeyed<T>(
  key: string,
  entries: readonly string[],
  read: Parameters<typeof readList<T>>[1],
): Keyed<T> {
  const filled = entries.filter((entry) => trimBlanks(entry) !== "");
  return { key, empty: entries.length - filled.length, ...readList(filled, read) };
}

function linkerdLists(conf: LinkerdConf): Keyed<unknown>[] {
  return [
    onlyPorts(conf),
    ports(conf, "inbound-ports-to-ignore"),
    ports(conf, "outbound-ports-to-ignore"),
    subnets(conf),
  ];
}

// Single ports: Linkerd's own list has no ranges.
function onlyPorts(conf: LinkerdConf): Keyed<number> {
  const key = "ports-to-redirect";
  return readKeyed(`linkerd.${key}`, conf[key].map(String), readPort);
}

function ports(
  conf: LinkerdConf,
  key: "inbound-ports-to-ignore" | "outbound-ports-to-ignore",
): Keyed<PortRange> {
  return readKeyed(`linkerd.${key}`, entriesOf(conf[key]), readPorts);
}

function ownPorts(conf: SluiceConf): Keyed<PortRange> {
  const key = "api-server-ports";
  return readKeyed(`sluice.${key}`, entriesOf(conf[key]), readPorts);
}

function subnets(conf: LinkerdConf): Keyed<Cidr> {
  const key = "subnets-to-ignore";
  return readKeyed(`linkerd.${key}`, conf[key], readCidr);
}

// Charts write a whole list of ports into one string.
function entriesOf(words: readonly NumberWord[]): string[] {
  return words.flatMap((word) => String(word).split(","));
}

function valuesOf<T>({ key, problems, values }: Keyed<T>): readonly T[] {
  const [problem] = problems;
  if (problem !== undefined) throw new RangeError(`${key}: ${printable(problem)}`);
  return values;
}
