// What `npm run bench` is asked for.
import { basename } from "node:path";
import { parseArgs } from "node:util";

export type Options = {
  /** Runs of each case; of the many at once, a sixth of it. */
  readonly runs: number;
  /** How many at once, where many are started at once. */
  readonly crowd: number;
  /** Only the executable, on nft. */
  readonly quick: boolean;
  /** Where the results go as JSON; "" for nowhere. */
  readonly json: string;
  /** Other CNI plugins, which are run on the same conf. */
  readonly peers: readonly Peer[];
};

export type Peer = { readonly name: string; readonly path: string };

export const usage = `usage: npm run bench -- [--runs N] [--crowd N] [--quick] [--json FILE] [--peer NAME=PATH]...
`;

/** Reads the command line. @throws Error (or TypeError) for what it does not know. */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: "string" },
      crowd: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string", default: "" },
      peer: { type: "string", multiple: true, default: [] },
    },
  });
  const { quick, json, peer } = values;
  return {
    runs: positive("runs", values.runs ?? (quick ? "5" : "30")),
    crowd: positive("crowd", values.crowd ?? (quick ? "10" : "50")),
    quick,
    json,
    peers: peer.map(parsePeer),
  };
}

function positive(name: string, text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new Error(`--${name} must be a number: ${text}`);
  return Number(text);
}

function parsePeer(text: string): Peer {
  const [, name, path = ""] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
  return name === undefined ? { name: basename(text), path: text } : { name, path };
}
