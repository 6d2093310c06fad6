// A look at a netns in which somebody may be at work: what is half done is no drift.
import { isDeepStrictEqual } from "node:util";
import type { AttachmentRecord } from "../attachment/record.ts";
import { outlast } from "./locked.ts";
import type { Observed } from "./observe.ts";
import { recordFor } from "./recorded.ts";
import type { Entered, Task } from "./task.ts";

/** A look that goes by the attachment's record, if it has one; undefined where nothing is expected. */
export type Look = (record: AttachmentRecord | undefined) => Promise<Observed | undefined>;

/**
 * What a look shows once nobody works in the netns: where it shows anything wrong while another process is at work, or the
 * record is a new one by now, it is had once more.
 * @throws Fault try-again when the other does not come to an end in time; and what the look throws.
 */
export async function settled(
  task: Task,
  here: Entered,
  look: Look,
): Promise<Observed | undefined> {
  const record = recordFor(task, here);
  const first = await look(record);
  if (first === undefined || first.kind === "as-intended") return first;
  const wasBusy = await outlast(task, here);
  const now = recordFor(task, here);
  return wasBusy || !isDeepStrictEqual(now, record) ? await look(now) : first;
}
