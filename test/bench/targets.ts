// What the figures shall be, as ratios within one run, and what they are: pure.
import type { Label } from "./case.ts";
import { medianOf, type Result, toInit, toLeast } from "./result.ts";
import type { Started } from "./strace.ts";

export type Target = {
  readonly name: string;
  readonly value: number | undefined;
  readonly limit: number;
};

/** Processes started for a new pod, by its families. */
export type Counted = Readonly<Record<string, Started>>;

/** Each aim with what came of it; undefined where it was not measured. */
export function targetsOf(
  results: readonly Result[],
  counted: Counted,
  crowdSize: number,
): Target[] {
  const both = ["ipv4", "dual"] as const;
  const sluice = results.filter(({ way }) => way === "sluice");
  return [
    ...both.map((families) => ({
      name: `ADD ${families}: × (node + restore)`,
      value: toLeast(results, add(families)),
      limit: 1.3,
    })),
    { name: "ADD ipv4: × init container", value: toInit(results, add("ipv4")), limit: 1.15 },
    { name: "ADD dual: × init container", value: toInit(results, add("dual")), limit: 0.62 },
    ...both.map((families) => ({
      name: `ADD ${families}: ms more with the API`,
      value: apiMs(results, families),
      limit: 15,
    })),
    { name: "CHECK dual: × (node + saves)", value: toLeast(results, check), limit: 1.35 },
    {
      name: "DEL, no record: × node",
      value: toLeast(results, simple("DEL, no record")),
      limit: 1.25,
    },
    { name: "VERSION: × node", value: toLeast(results, simple("VERSION")), limit: 1.25 },
    {
      name: `${crowdSize} ADDs at once: × init container`,
      value: toInit(results, { ...add("dual"), action: `${crowdSize} ADDs at once` }),
      limit: 1.1,
    },
    { name: "peak RSS, MB", value: largest(sluice.map(({ summary }) => summary.rssMb)), limit: 75 },
    ...both.flatMap((families) => [
      { name: `ADD ${families}: children`, value: counted[families]?.children, limit: 2 },
      {
        name: `ADD ${families}: processes in all`,
        value: counted[families]?.all,
        limit: families === "ipv4" ? 4 : 8,
      },
    ]),
  ];
}

function add(families: string): Label {
  return { way: "sluice", action: "ADD, new pod", families, backend: "nft", source: "annotations" };
}

const check: Label = { ...add("dual"), action: "CHECK" };

function simple(action: string): Label {
  return { way: "sluice", action, families: "", backend: "", source: "" };
}

function apiMs(results: readonly Result[], families: string): number | undefined {
  const without = medianOf(results, add(families));
  const withApi = medianOf(results, { ...add(families), source: "api" });
  if (without === undefined || withApi === undefined) return undefined;
  return Math.round((withApi - without) * 10) / 10;
}

function largest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values);
}
