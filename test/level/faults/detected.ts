// What a call has found out about the backend: in its log, and in the attachment's record.
import { logLines, type Node, type TimedAnswer } from "./node.ts";

/** The message of the line that tells it. */
export const detected = "backend detected";

/** The lines that tell it. */
export function detections(answer: TimedAnswer): Record<string, unknown>[] {
  return logLines(answer).filter((line) => line["msg"] === detected);
}

/** The record of the node's pod. */
export function recordOf({ stateFile }: Node): unknown {
  return stateFile("attachments/lab,c1,eth0.json");
}
