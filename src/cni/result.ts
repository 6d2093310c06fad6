// prevResult: what the plugins before us made. We read its addresses and hand its text on untouched.
import { isJsonObject, type NetworkConf } from "./conf.ts";
import { CniError, errorCode } from "./error.ts";

/** What ADD needs of prevResult. */
export type PrevResult = {
  /** ADD's stdout: prevResult's own text, with `cniVersion` put in front where it had none. */
  readonly text: string;
  /** The addresses of `ips`, with prefix length, as the primary plugin wrote them. */
  readonly addresses: readonly string[];
};

/**
 * Reads prevResult. Without one the plugin stands alone: the result is the smallest valid one, as linkerd-cni gives.
 * @throws CniError 7 when prevResult is no object, or is of another version than the conf (spec, "ADD").
 */
export function readPrevResult(conf: NetworkConf): PrevResult {
  const { cniVersion, prevResult } = conf;
  if (prevResult === undefined) return { text: withVersion("{}", cniVersion), addresses: [] };
  const value: unknown = JSON.parse(prevResult);
  if (!isJsonObject(value)) throw invalid("it is not a JSON object");
  const version = value["cniVersion"] ?? "";
  if (version !== "" && version !== cniVersion) {
    throw invalid(
      `result type supports [${cniVersion}] but unmarshalled CNIVersion is ${JSON.stringify(version)}`,
    );
  }
  return {
    text: version === "" ? withVersion(prevResult, cniVersion) : prevResult,
    addresses: addressesOf(value["ips"] ?? []),
  };
}

function addressesOf(ips: unknown): string[] {
  if (!Array.isArray(ips)) throw invalid("ips is not a list");
  return ips.map((ip: unknown) => {
    const address = isJsonObject(ip) ? ip["address"] : undefined;
    if (typeof address === "string") return address;
    throw invalid("an entry of ips has no address");
  });
}

// An empty `cniVersion` later in the text would win over ours with a decoder that takes the last of two
// equal keys, so such a text is written anew; this is the only case in which it is not passed on as it came.
function withVersion(object: string, cniVersion: string): string {
  const value: unknown = JSON.parse(object);
  if (isJsonObject(value) && Object.hasOwn(value, "cniVersion")) {
    return JSON.stringify({ ...value, cniVersion });
  }
  const rest = object.slice(object.indexOf("{") + 1).trimStart();
  return `{"cniVersion":${JSON.stringify(cniVersion)}${rest.startsWith("}") ? "" : ","}${rest}`;
}

function invalid(problem: string): CniError {
  return new CniError(errorCode.invalidConf, `could not parse prevResult: ${problem}`);
}
