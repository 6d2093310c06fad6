// prevResult: what the plugins before us made. We read its addresses and hand its text on untouched, but for the version of
// the spec where it is another than the conf's.
import { isJsonObject, type JsonObject, member, type NetworkConf } from "./conf.ts";
import { CniError, errorCode } from "./error.ts";
import { rawMembers } from "./raw-json.ts";
import { hasIpVersion, supportedVersions } from "./version.ts";

/** What ADD needs of prevResult. */
export type PrevResult = {
  /** ADD's stdout: prevResult's own text, with `cniVersion` put in front where it had none or another. */
  readonly text: string;
  /** The addresses of `ips`, with prefix length, as the primary plugin wrote them. */
  readonly addresses: readonly string[];
};

/**
 * Reads prevResult, of any version that is spoken here. Without one the plugin stands alone: the result is the smallest
 * valid one, as linkerd-cni gives.
 * @throws CniError 7 when prevResult is no object, or of a version that is not spoken (spec, "ADD").
 */
export function readPrevResult(conf: NetworkConf): PrevResult {
  const { cniVersion, prevResult = "{}" } = conf;
  const value: unknown = JSON.parse(prevResult);
  if (!isJsonObject(value)) throw invalid("it is not a JSON object");
  const version = member(value, "cniVersion")?.value ?? "";
  const addresses = addressesOf(member(value, "ips")?.value ?? []);
  if (version === cniVersion) return { text: prevResult, addresses };
  const from = supportedVersions.find((spoken) => spoken === version);
  if (version !== "" && from === undefined) {
    throw invalid(
      `result type supports [${cniVersion}] but unmarshalled CNIVersion is ${JSON.stringify(version)}`,
    );
  }
  return { text: inVersion(prevResult, cniVersion, from ?? cniVersion), addresses };
}

function addressesOf(ips: unknown): string[] {
  return listOf("ips", ips).map((ip) => {
    const address = isJsonObject(ip) ? ip["address"] : undefined;
    if (typeof address === "string") return address;
    throw invalid("an entry of ips has no address");
  });
}

function listOf(key: string, value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw invalid(`${key} is not a list`);
}

// Members are kept as they are written, and each in its place.
function inVersion(json: string, to: string, from: string): string {
  const members = rawMembers(json);
  const version = `"cniVersion":${JSON.stringify(to)}`;
  if (!members.some(({ key }) => isVersion(key))) {
    return `{${version}${members.length === 0 ? "" : ","}${json.slice(json.indexOf("{") + 1).trimStart()}`;
  }
  const convert = hasIpVersion(from) === hasIpVersion(to) ? {} : conversions(to);
  const texts = members.map(({ key, keyText, text }) => {
    if (isVersion(key)) return version;
    const convertEntry = Object.hasOwn(convert, key) ? convert[key] : undefined;
    return `${keyText}:${convertEntry === undefined ? text : convertList(key, text, convertEntry)}`;
  });
  return `{${texts.join(",")}}`;
}

// Go's decoder, the runtimes' own, does not look at case.
function isVersion(key: string): boolean {
  return key.toLowerCase() === "cniversion";
}

type Conversion = (entry: JsonObject) => object;

// What the reference library's conversion changes (types/100, convertTo04x and back); what is unknown stays.
function conversions(to: string): Readonly<Record<string, Conversion>> {
  if (!hasIpVersion(to)) return { ips: ({ version: _, ...ip }) => ip };
  return {
    ips: (ip) => ({ version: String(ip["address"]).includes(":") ? "6" : "4", ...ip }),
    interfaces: ({ mtu: _mtu, socketPath: _path, pciID: _id, ...device }) => device,
  };
}

function convertList(key: string, text: string, convert: Conversion): string {
  const value: unknown = JSON.parse(text);
  if (value === null) return text;
  const entries = listOf(key, value);
  return JSON.stringify(entries.map((entry) => (isJsonObject(entry) ? convert(entry) : entry)));
}

function invalid(problem: string): CniError {
  return new CniError(errorCode.invalidConf, `could not parse prevResult: ${problem}`);
}
