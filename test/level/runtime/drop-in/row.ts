// What a row of parity says: a key of the conf, an annotation, or a fact of the pod, and what comes of it.
import type { Annotations, PodWish } from "../../../lab/api-objects.ts";
import { type ConfWish, chartDefault } from "./level.ts";

/** What the rules of one family say; what is not named is as the chart's default makes it. */
export type Rules = {
  readonly uid?: number;
  readonly gid?: number;
  readonly inPort?: number;
  readonly outPort?: number;
  /** Values of --dports, one a rule. */
  readonly in?: readonly string[];
  readonly out?: readonly string[];
  readonly from?: readonly string[];
  readonly only?: readonly number[];
};

/** What comes of an ADD. */
export type Gives = {
  readonly rules?: Rules;
  readonly ipv6?: Rules;
  readonly skipped?: string;
  readonly error?: readonly [code: number, msg: string, details?: string];
  readonly warns?: readonly string[];
  /** To the API; two where a meshed pod is read from it. */
  readonly requests?: number;
};

export type Row = ConfWish & {
  /** As README names it. */
  readonly key: string;
  readonly when: string;
  readonly pod?: PodWish;
  readonly namespace?: Annotations;
  readonly args?: string;
  readonly gives: Gives;
};

type More = Omit<Row, "key" | "when">;

export const row = (key: string, when: string, more: More): Row => ({ key, when, ...more });

export const linkerd = (keys: Readonly<Record<string, unknown>>) => ({
  linkerd: { ...chartDefault, ...keys },
});
/** For a pod whose proxy the API told of: no more is asked. */
export const badConf = (problem: string): Gives => ({
  error: [7, `invalid conf: ${problem}`],
  requests: 1,
});

/** Annotations of Linkerd's configuration, by their keys without prefix. */
export const config = (entries: Annotations): Annotations =>
  Object.fromEntries(
    Object.entries(entries).map(([key, text]) => [`config.linkerd.io/${key}`, text]),
  );

/** Why the runtime's annotations have a pod left alone. */
export const unmarked = "no annotation linkerd.io/proxy-version: the pod has no proxy";

/** Why there is no way to know the pod, by a runtime that hands over nothing. */
export const noAnnotations =
  "the runtime sent no io.kubernetes.cri.pod-annotations (set it in the entry's capabilities)";
export const noWay = (details: string): Gives => ({
  error: [7, "invalid conf: there is no way to know the pod", details],
  requests: 0,
});
