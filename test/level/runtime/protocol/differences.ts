// Where the plugin means to answer otherwise than the reference plugin tuning: by the vector's name, with the reason.

/** What is compared of an answer. */
export type Shown = {
  readonly exitCode: number | undefined;
  readonly code?: unknown;
  readonly msg?: unknown;
};

export type Difference = { readonly ours: Shown; readonly because: string };

const fails = (code: number, msg: string): Shown => ({ exitCode: 1, code, msg });
const succeeds: Shown = { exitCode: 0 };

const unmarshall = (problem: string) => fails(6, `error unmarshall network config: ${problem}`);
const absent = fails(3, "CNI_NETNS /run/netns/slc-none cannot be opened");
const noNetns = fails(102, "CNI_NETNS /etc/hostname is not a network namespace");
const ownNetns = fails(8, "plugin's netns and netns from CNI_NETNS should not be the same");
const noNumber = fails(6, 'failed to convert major version part "nonsense": not a number');
const unspoken = fails(1, "incompatible CNI versions");

const parser = "after the colon, these are the JSON parser's own words";
const shape = "the reference says which Go type it wanted";
const atoi = "the reference names the Go function that it asked";
const chained = "chained plugins exist since 0.3.0; tuning takes older confs and fails later";
const coded = "tuning's handler gives a plain error, 999; the spec has a code for it";
const before = "the netns is looked at before anything is done; the reference looks afterwards";
const lenient = "libcni stops the chain at the first DEL that fails, which leaks addresses";
const standalone = "without a prevResult the plugin stands alone, as linkerd-cni does";
const anyVersion =
  "a result of any version that is spoken is taken, and printed in the list's (cni#862)";
const args = "runtimes add keys of their own to CNI_ARGS, and nothing here depends on them";

const rows: readonly (readonly [vector: string, ours: Shown, because: string])[] = [
  ["ADD has an id of 151 characters", fails(4, "containerID is too long"), "it names a file"],
  ["ADD has nothing on stdin", unmarshall("Unexpected end of JSON input"), parser],
  ["ADD has blanks on stdin", unmarshall("Unexpected end of JSON input"), parser],
  ["ADD has half an object on stdin", unmarshall("Unexpected end of JSON input"), parser],
  [
    "ADD has two objects on stdin",
    unmarshall("Unexpected non-whitespace character after JSON at position 2 (line 1 column 3)"),
    parser,
  ],
  [
    "ADD has a byte order mark on stdin",
    unmarshall(`Unexpected token '\ufeff', "\ufeff{"name":"lab"}" is not valid JSON`),
    parser,
  ],
  ["ADD has a list on stdin", unmarshall("the conf is not a JSON object"), shape],
  ["ADD has a number on stdin", unmarshall("the conf is not a JSON object"), shape],
  ["ADD has a number for a name", unmarshall("name is not a string"), shape],
  [
    "ADD has a number for a version",
    fails(6, "decoding version from network config: cniVersion is not a string"),
    shape,
  ],
  ["ADD speaks 0.2.0", unspoken, chained],
  ["ADD names no version", unspoken, chained],
  ["CHECK speaks nonsense", noNumber, atoi],
  ["GC speaks nonsense", noNumber, atoi],
  ["STATUS speaks nonsense", noNumber, atoi],
  ["ADD is about the plugin's own netns", ownNetns, before],
  ["CHECK is about the plugin's own netns", ownNetns, before],
  ["DEL is about the plugin's own netns", succeeds, lenient],
  ["ADD is about a netns that is not there", absent, coded],
  ["CHECK is about a netns that is not there", absent, coded],
  ["ADD is about a file that is no netns", noNetns, coded],
  ["CHECK is about a file that is no netns", noNetns, coded],
  ["ADD has no prevResult", succeeds, standalone],
  [
    "ADD has a list for a prevResult",
    fails(7, "could not parse prevResult: it is not a JSON object"),
    coded,
  ],
  ["ADD has a prevResult of another version", succeeds, anyVersion],
  ["ADD has pairs and IgnoreUnknown", succeeds, args],
  ["ADD has pairs and no IgnoreUnknown", succeeds, args],
  ["ADD has arguments that are no pairs", succeeds, args],
  ["DEL has nothing on stdin", succeeds, lenient],
  ["DEL has no name", succeeds, lenient],
  ["DEL speaks 9.9.9", succeeds, lenient],
];

/** By the vector's name. */
export const differences: Readonly<Record<string, Difference>> = Object.fromEntries(
  rows.map(([vector, ours, because]) => [vector, { ours, because }]),
);
