// What is known of a pod before anybody is asked about it, and with what to ask.
import type { Settings } from "../../conf/settings.ts";
import type { Annotations } from "../../mesh/pod.ts";
import type { Subject, Task } from "../task.ts";

export type Asking = Omit<Task, "settings"> & {
  readonly settings: Settings;
  readonly subject: Subject;
  /** The UID of the pod that the sandbox is for; "" where the runtime tells none. */
  readonly uid: string;
  /** The pod's own, as the runtime tells them; undefined where it does not. */
  readonly annotations: Annotations | undefined;
};
