// Calls that the reference library judges before a plugin acts, and some that the plugin judges: in the order in which the
// library goes over them.

/** What is set in place of a good call's; undefined takes a variable away. `@own` and `@pod` stand for netns paths. */
type Env = Readonly<Record<string, string | undefined>>;

export type Vector = {
  /** What the call is; ends the sentence "the plugin answers ... when". */
  readonly name: string;
  readonly env: Env;
  /** Keys in place of a good conf's, or all of stdin; "@state" in a text is the scene's state directory. */
  readonly input: Conf | string | Uint8Array;
};

/** Keys of the conf; undefined takes one away. */
type Conf = { readonly keys: Readonly<Record<string, unknown>> };

type Row = readonly [name: string, env: Env, input?: Vector["input"]];

const conf = (keys: Conf["keys"]): Conf => ({ keys });
const good = conf({});
const version = (cniVersion: unknown) => conf({ cniVersion });
const speaks = (cniVersion: string) => conf({ cniVersion, prevResult: { cniVersion } });
const name = (value: unknown) => conf({ name: value });

const verbs = ["ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION"];
const variables = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"];

function of(command: string, rows: readonly Row[]): Vector[] {
  return rows.map(([what, env, input = good]) => {
    return { name: `${command} ${what}`, env: { CNI_COMMAND: command, ...env }, input };
  });
}

function unset(names: readonly string[]): Env {
  return Object.fromEntries(names.map((one) => [one, undefined]));
}

const missing = [
  ...["ADD", "CHECK", "DEL"].flatMap((command) =>
    of(command, [
      ...variables.map((one): Row => [`has no ${one}`, unset([one])]),
      ["has no variable", unset(variables)],
    ]),
  ),
  ...["GC", "STATUS", "VERSION"].flatMap((command) =>
    of(command, [
      ["has no CNI_PATH", unset(["CNI_PATH"])],
      ["has nothing but CNI_PATH", { ...unset(variables), CNI_PATH: "/opt/cni/bin" }],
    ]),
  ),
  ...of("ADD", [["has empty variables", Object.fromEntries(variables.map((one) => [one, ""]))]]),
];

const ids = of("ADD", [
  ["has an id with a dash ahead", { CNI_CONTAINERID: "-a" }],
  ["has an id with a dot ahead", { CNI_CONTAINERID: ".a" }],
  ["has an id with a slash", { CNI_CONTAINERID: "a/b" }],
  ["has an id with a comma", { CNI_CONTAINERID: "a,b" }],
  ["has an id with a line feed at its end", { CNI_CONTAINERID: "a\n" }],
  ["has an id with a letter that is not ASCII", { CNI_CONTAINERID: "ä" }],
  ["has an id with all that is allowed", { CNI_CONTAINERID: "0a_B.c-9" }],
  ["has an id of 64 characters", { CNI_CONTAINERID: "a".repeat(64) }],
  ["has an id of 151 characters", { CNI_CONTAINERID: "a".repeat(151) }],
  ["has a bad id and no path", { CNI_CONTAINERID: "/", CNI_PATH: "" }],
  ["has a bad id and a bad interface", { CNI_CONTAINERID: "/", CNI_IFNAME: "/" }],
]);

const interfaces = of("ADD", [
  ["has an interface of 15 characters", { CNI_IFNAME: "a".repeat(15) }],
  ["has an interface of 16 characters", { CNI_IFNAME: "a".repeat(16) }],
  ["has an interface of 8 characters and 16 bytes", { CNI_IFNAME: "ä".repeat(8) }],
  ["has the interface .", { CNI_IFNAME: "." }],
  ["has the interface ..", { CNI_IFNAME: ".." }],
  ["has the interface ...", { CNI_IFNAME: "..." }],
  ["has an interface with a slash", { CNI_IFNAME: "a/b" }],
  ["has an interface with a colon", { CNI_IFNAME: "a:b" }],
  ["has an interface with a comma", { CNI_IFNAME: "a,b" }],
  ["has an interface with a blank", { CNI_IFNAME: "a b" }],
  ["has an interface with a vertical tab", { CNI_IFNAME: "a\v" }],
  ["has an interface with a next line", { CNI_IFNAME: "a\u0085" }],
  ["has an interface with a wide blank", { CNI_IFNAME: "a\u2003b" }],
  ["has an interface with a byte order mark", { CNI_IFNAME: "a\ufeff" }],
  ["has a bad interface and no netns", { CNI_IFNAME: "/", CNI_NETNS: "" }],
]);

const unlooked = verbs.flatMap((command) =>
  of(command, [["has a bad id and interface", { CNI_CONTAINERID: "/", CNI_IFNAME: "/" }]]),
);

const stdins = of("ADD", [
  ["has nothing on stdin", {}, ""],
  ["has blanks on stdin", {}, " \n"],
  ["has null on stdin", {}, "null"],
  ["has a list on stdin", {}, "[]"],
  ["has a number on stdin", {}, "5"],
  ["has half an object on stdin", {}, '{"name":'],
  ["has two objects on stdin", {}, "{}{}"],
  ["has a byte order mark on stdin", {}, '\ufeff{"name":"lab"}'],
  ["has nothing on stdin and no path", { CNI_PATH: "" }, ""],
]);

const names = of("ADD", [
  ["has no name", {}, name(undefined)],
  ["has an empty name", {}, name("")],
  ["has the name null", {}, name(null)],
  ["has a number for a name", {}, name(5)],
  ["has a name with a blank", {}, name("a b")],
  ["has a name with a dash ahead", {}, name("-a")],
  ["has a name with a line feed at its end", {}, name("a\n")],
  ["has a bad name and a bad version", {}, conf({ name: "/", cniVersion: 5 })],
  [
    "has two names",
    {},
    '{"name":"/","name":"lab","cniVersion":"1.1.0","prevResult":{},"linkerd":{"incoming-proxy-port":1,"outgoing-proxy-port":2,"proxy-uid":3},"sluice":{"state-dir":"@state"}}',
  ],
  ["has keys in capitals", {}, '{"NAME":"/","CNIVERSION":"9"}'],
]);

const versions = [
  ...of("ADD", [
    ["speaks 0.3.0", {}, speaks("0.3.0")],
    ["speaks 0.3.1", {}, speaks("0.3.1")],
    ["speaks 0.4.0", {}, speaks("0.4.0")],
    ["speaks 1.0.0", {}, speaks("1.0.0")],
    ["speaks 1.1.0", {}, speaks("1.1.0")],
    ["speaks 0.2.0", {}, conf({ cniVersion: "0.2.0", prevResult: undefined })],
    ["names no version", {}, conf({ cniVersion: undefined, prevResult: undefined })],
    ["speaks 1.1.1", {}, version("1.1.1")],
    ["speaks 9.9.9", {}, version("9.9.9")],
    ["speaks 1.0", {}, version("1.0")],
    ["speaks nonsense", {}, version("nonsense")],
    ["has a number for a version", {}, version(1)],
  ]),
  ...["CHECK", "GC", "STATUS"].flatMap((command) =>
    of(command, [
      ["speaks 0.3.1", {}, speaks("0.3.1")],
      ["speaks 1.1.1", {}, version("1.1.1")],
      ["speaks 1.0.0.0", {}, version("1.0.0.0")],
      ["speaks nonsense", {}, version("nonsense")],
    ]),
  ),
  ...of("GC", [["speaks 1.0.0", {}, speaks("1.0.0")]]),
  ...of("STATUS", [["speaks 1.0.0", {}, speaks("1.0.0")]]),
];

const unknownVerbs = [
  ...of("FOO", [
    ["is no verb", {}],
    ["is no verb, with no variable", unset(variables)],
    ["is no verb, with no name", {}, name("")],
    ["is no verb, with an unknown version", {}, version("9.9.9")],
  ]),
  ...of("add", [["is no verb", {}]]),
  ...of("ADD ", [["is no verb", {}]]),
];

const noVerbs: Vector[] = [
  { name: "there is no command", env: { CNI_COMMAND: undefined }, input: good },
  { name: "the command is empty", env: { CNI_COMMAND: "" }, input: "" },
];

const paths = ["ADD", "CHECK", "DEL"].flatMap((command) =>
  of(command, [
    ["is about the plugin's own netns", { CNI_NETNS: "@own" }],
    ["is about a netns that is not there", { CNI_NETNS: "/run/netns/slc-none" }],
    ["is about a file that is no netns", { CNI_NETNS: "/etc/hostname" }],
  ]),
);

const overrides = of("ADD", [
  ["says 1: its own netns is meant", { CNI_NETNS: "@own", CNI_NETNS_OVERRIDE: "1" }],
  ["says TRUE: its own netns is meant", { CNI_NETNS: "@own", CNI_NETNS_OVERRIDE: "TRUE" }],
]);

const results = of("ADD", [
  ["has an empty prevResult", {}, conf({ prevResult: {} })],
  ["has no prevResult", {}, conf({ prevResult: undefined })],
  ["has a list for a prevResult", {}, conf({ prevResult: [] })],
  ["has a prevResult of another version", {}, conf({ prevResult: { cniVersion: "0.4.0" } })],
]);

const args = of("ADD", [
  ["has pairs and IgnoreUnknown", { CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAME=web;MAC=0" }],
  ["has pairs and no IgnoreUnknown", { CNI_ARGS: "K8S_POD_NAME=web" }],
  ["has arguments that are no pairs", { CNI_ARGS: "web" }],
]);

const dels = of("DEL", [
  ["has nothing on stdin", {}, ""],
  ["has no name", {}, name("")],
  ["speaks 9.9.9", {}, version("9.9.9")],
  ["has no prevResult", {}, conf({ prevResult: undefined })],
]);

export const vectors: readonly Vector[] = [
  ...missing,
  ...ids,
  ...interfaces,
  ...unlooked,
  ...stdins,
  ...names,
  ...versions,
  ...unknownVerbs,
  ...noVerbs,
  ...paths,
  ...overrides,
  ...results,
  ...args,
  ...dels,
];
