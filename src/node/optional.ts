// Knowledge that is optional: what cannot be kept or read is found out again, and fails no command.
import { type Memory, noKnowledge } from "./knowledge.ts";

/** The same memory; `tell` is given what went wrong with it. */
export function withOptionalKnowledge<T extends Memory>(
  memory: T,
  tell: (error: unknown) => void,
): T {
  return {
    ...memory,
    knowledge: () => {
      try {
        return memory.knowledge();
      } catch (error) {
        tell(error);
        return noKnowledge;
      }
    },
    keepKnowledge: (known) => {
      try {
        memory.keepKnowledge(known);
      } catch (error) {
        tell(error);
      }
    },
  };
}
