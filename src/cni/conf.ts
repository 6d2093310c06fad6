// The part of the plugin conf that the protocol defines, decoded from stdin. Our own keys (conf/reader.ts) come later.

import { parseJson } from "../text/json.ts";
import { CniError, errorCode } from "./error.ts";
import { rawMember } from "./raw-json.ts";
import { namePattern } from "./request.ts";
import { impliedVersion } from "./version.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** The protocol's keys of one plugin conf, and the whole document, in which others read their own keys. */
export type NetworkConf = {
  readonly cniVersion: string;
  readonly name: string;
  /** prevResult's source text, untouched; undefined when absent or null. */
  readonly prevResult: string | undefined;
  readonly document: JsonObject;
};

/**
 * Decodes stdin.
 * @throws CniError 6 when it is no JSON object of the right types, or is nested too deeply, 7 without a usable network name
 * (order and texts of the reference library's skel).
 */
export function parseNetworkConf(stdin: string): NetworkConf {
  const document = parseObject(stdin);
  const name = stringMember(document, "name", unmarshalling);
  if (name === "") throw invalid("missing network name");
  if (!namePattern.test(name)) throw invalid("invalid characters found in network name", name);
  const prevResult = member(document, "prevResult");
  return {
    cniVersion: stringMember(document, "cniVersion", decodingVersion) || impliedVersion,
    name,
    prevResult: prevResult?.value == null ? undefined : rawMember(stdin, prevResult.key),
    document,
  };
}

/** A member by its exact key, or else by the key in any case: Go's decoder, the runtimes' own, does not look at case. */
export function member(
  object: JsonObject,
  key: string,
): { key: string; value: unknown } | undefined {
  if (Object.hasOwn(object, key)) return { key, value: object[key] };
  const folded = key.toLowerCase();
  const found = Object.keys(object).find((candidate) => candidate.toLowerCase() === folded);
  return found === undefined ? undefined : { key: found, value: object[found] };
}

/** True for a JSON object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseObject(stdin: string): JsonObject {
  let value: unknown;
  try {
    value = parseJson(stdin);
  } catch (cause) {
    throw undecodable(unmarshalling, cause instanceof Error ? cause.message : String(cause));
  }
  // The reference library takes `null` for an empty conf, whose name is then missed.
  if (value === null) return {};
  if (!isJsonObject(value)) throw undecodable(unmarshalling, "the conf is not a JSON object");
  return value;
}

// The reference library's words for what it was doing.
const unmarshalling = "error unmarshall network config";
const decodingVersion = "decoding version from network config";

function stringMember(document: JsonObject, key: string, doing: string): string {
  const value = member(document, key)?.value ?? "";
  if (typeof value !== "string") throw undecodable(doing, `${key} is not a string`);
  return value;
}

function undecodable(doing: string, problem: string): CniError {
  return new CniError(errorCode.decodingFailure, `${doing}: ${problem}`);
}

function invalid(message: string, details = ""): CniError {
  return new CniError(errorCode.invalidConf, message, { details });
}
