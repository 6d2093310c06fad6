// The spec versions that the plugin speaks, and which verb exists from which version on.
import { CniError, errorCode } from "./error.ts";

/** Chained plugins exist since 0.3.0; all later versions of the spec are spoken. */
export const supportedVersions: readonly string[] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/** The newest version spoken: the one of VERSION's answer and of errors before the conf is known. */
export const currentVersion = "1.1.0";

/** What a conf without `cniVersion` means (spec 0.1.0 had no such key). */
export const impliedVersion = "0.1.0";

const sinceVersion: ReadonlyMap<string, string> = new Map([
  ["CHECK", "0.4.0"],
  ["GC", "1.1.0"],
  ["STATUS", "1.1.0"],
]);

/** True for a spoken version whose results say of each address which IP version it is of. */
export function hasIpVersion(version: string): boolean {
  return !atLeast(version, "1.0.0");
}

/** VERSION's answer. */
export function renderVersions(): string {
  return JSON.stringify({ cniVersion: currentVersion, supportedVersions });
}

/**
 * Lets a command pass when the conf's version has its verb and is spoken here.
 * @throws CniError 1 (with the reference library's texts), or 6 for a version that is no version.
 */
export function requireVersion(verb: string, confVersion: string): void {
  const since = sinceVersion.get(verb);
  if (since !== undefined) {
    if (!atLeast(confVersion, since)) {
      throw incompatible(`config version does not allow ${verb}`);
    }
    if (!supportedVersions.some((version) => atLeast(version, confVersion))) {
      throw incompatible(`plugin version does not allow ${verb}`);
    }
  }
  if (!supportedVersions.includes(confVersion)) {
    const quoted = supportedVersions.map((version) => JSON.stringify(version)).join(" ");
    const details = `config is ${JSON.stringify(confVersion)}, plugin supports [${quoted}]`;
    throw incompatible("incompatible CNI versions", details);
  }
}

function atLeast(version: string, other: string): boolean {
  const [a, b] = [parseVersion(version), parseVersion(other)];
  const differing = a.findIndex((part, i) => part !== b[i]);
  return differing === -1 || (a[differing] ?? 0) > (b[differing] ?? 0);
}

const partNames = ["major", "minor", "micro"] as const;

// Texts as the reference library's version.ParseVersion gives them.
function parseVersion(version: string): number[] {
  if (version === "") throw undecodable('invalid version "": the version is empty');
  const parts = version.split(".");
  if (parts.length >= 4) throw undecodable(`invalid version "${version}": too many parts`);
  return partNames.map((name, i) => {
    const part = parts[i] ?? "0";
    if (/^[+-]?[0-9]+$/.test(part)) return Number(part);
    throw undecodable(
      `failed to convert ${name} version part ${JSON.stringify(part)}: not a number`,
    );
  });
}

function incompatible(message: string, details = ""): CniError {
  return new CniError(errorCode.incompatibleVersion, message, { details });
}

function undecodable(message: string): CniError {
  return new CniError(errorCode.decodingFailure, message);
}
