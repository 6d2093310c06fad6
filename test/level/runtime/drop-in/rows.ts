// Parity with linkerd-cni, row by row. README's table "Drop-in for linkerd-cni" names the same keys (test/docs holds the one
// against the other).
import { annotationRows } from "./annotation-rows.ts";
import { confRows } from "./conf-rows.ts";
import { podRows } from "./pod-rows.ts";
import type { Row } from "./row.ts";

export const rows: readonly Row[] = [...confRows, ...annotationRows, ...podRows];

/** Keys of README's table that one ADD does not show; calls.test.ts has a list of tests for each. */
export const callKeys = ["linkerd.simulate", "log_level", "CHECK", "DEL", "STATUS, GC"] as const;
