// One job of a batch, and what comes of it: one family through one backend. client.ts runs them, answer.ts reads what came back.
import type { Netns } from "../../netns/path.ts";
import type { Backend, Family, TableName } from "../table.ts";
import type { Presence } from "./presence.ts";
import type { Tools } from "./tools.ts";

/** Work on one family through one backend: write `restore` if given, then read the table. */
export type Job = {
  readonly family: Family;
  readonly backend: Backend;
  readonly tools: Tools;
  /** The text for iptables-restore; "" to read only. */
  readonly restore: string;
  /** The table that nft's save shows; nat where none is named. Legacy's always shows all that there are. */
  readonly table?: TableName | "all";
  /** What nft is to list besides, once all is done; with one job of a batch. */
  readonly native?: NativeLook;
  /** Only where IPv6 is possible (see presence.ts), in a batch that looks at it; elsewhere nothing is done. */
  readonly ifPossible?: true;
};

/** nft, and what to ask it for, at most five listings: one at a time, since 1.0.6 mixes up several in one. */
export type NativeLook = { readonly program: string; readonly listings: readonly string[] };

/** What nft printed for one listing. No status: it did not end by itself. */
export type NativeAnswer = {
  readonly listing: string;
  readonly status: number | undefined;
  readonly text: string;
  readonly said: string;
};

/** What came of a job. Status 0 is success; the shell's 126 and 127 mean that the program could not be run. */
export type Outcome = {
  readonly job: Job;
  readonly restoreStatus: number;
  readonly saveStatus: number;
  readonly saved: string;
  readonly stderr: string;
  /** With the job that nft was to be asked with, in the order of its listings. */
  readonly native?: readonly NativeAnswer[];
  /** Nothing could be hidden from the tools, so they may have asked the network for users (see nssMask). */
  readonly unmasked?: true;
  /** Nothing was done: IPv6 is not possible in this netns (see Job.ifPossible). */
  readonly absent?: true;
  /** What the netns has of the families that the client looks at. */
  readonly presence?: Presence;
};

/** Where the tools work: in a pod's netns, in an empty one that ends with the batch, or on the node itself (to read). */
export type Place = Netns | "scratch" | "host";
