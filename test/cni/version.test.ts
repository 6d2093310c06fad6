// Which versions are spoken, and which verb exists from when on.
import { expect, test } from "vitest";
import { renderVersions, requireVersion, supportedVersions } from "../../src/cni/version.ts";
import { cniError, type Thrown, thrownBy } from "../fake/thrown.ts";

test("renderVersions() answers VERSION", () => {
  expect(renderVersions()).toBe(
    '{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}',
  );
});

const first: [verb: string, version: string][] = [
  ["ADD", "0.3.0"],
  ["DEL", "0.3.0"],
  ["CHECK", "0.4.0"],
  ["GC", "1.1.0"],
  ["STATUS", "1.1.0"],
];

test.each(first)("requireVersion() lets %s pass from %s on, and not before", (verb, version) => {
  const passing = supportedVersions.filter(
    (candidate) => thrownBy(() => requireVersion(verb, candidate)) === undefined,
  );
  expect(passing).toEqual(supportedVersions.slice(supportedVersions.indexOf(version)));
});

const list = '["0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]';
const unspoken = (version: string) =>
  cniError(1, "incompatible CNI versions", `config is "${version}", plugin supports ${list}`);
const notYet = (verb: string) => cniError(1, `config version does not allow ${verb}`);
const newer = (verb: string) => cniError(1, `plugin version does not allow ${verb}`);
const unreadable = (message: string) => cniError(6, message);

const refused: [verb: string, version: string, error: Thrown][] = [
  ["ADD", "0.1.0", unspoken("0.1.0")],
  ["ADD", "0.2.0", unspoken("0.2.0")],
  ["ADD", "1.2.0", unspoken("1.2.0")],
  ["ADD", "1.0", unspoken("1.0")],
  ["DEL", "nonsense", unspoken("nonsense")],
  ["ADD", "constructor", unspoken("constructor")],
  ["constructor", "toString", unspoken("toString")],
  [
    "CHECK",
    "__proto__",
    unreadable('failed to convert major version part "__proto__": not a number'),
  ],
  ["CHECK", "0.3.1", notYet("CHECK")],
  ["CHECK", "0.1.0", notYet("CHECK")],
  ["GC", "1.0.0", notYet("GC")],
  ["STATUS", "1.0.9", notYet("STATUS")],
  ["CHECK", "1.1.1", newer("CHECK")],
  ["STATUS", "2.0.0", newer("STATUS")],
  ["CHECK", "1.0", unspoken("1.0")],
  ["CHECK", "0.10.0", unspoken("0.10.0")],
  ["CHECK", "", unreadable('invalid version "": the version is empty')],
  ["CHECK", "1.0.0.0", unreadable('invalid version "1.0.0.0": too many parts')],
  ["CHECK", "x.0.0", unreadable('failed to convert major version part "x": not a number')],
  ["CHECK", "1.y", unreadable('failed to convert minor version part "y": not a number')],
  ["CHECK", "1.0.z", unreadable('failed to convert micro version part "z": not a number')],
];

test.each(refused)("requireVersion() refuses %s when the conf says %j", (verb, version, error) => {
  expect(thrownBy(() => requireVersion(verb, version))).toEqual(error);
});
