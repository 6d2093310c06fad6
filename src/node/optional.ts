// A store whose knowledge is optional: what cannot be kept or read is found out again, and fails no command. Records are
// not optional.

import type { Store } from "../attachment/store.ts";
import { noKnowledge } from "./knowledge.ts";

/** The same store; `tell` is given what went wrong with the knowledge. */
export function withOptionalKnowledge(store: Store, tell: (error: unknown) => void): Store {
  return {
    ...store,
    knowledge: () => {
      try {
        return store.knowledge();
      } catch (error) {
        tell(error);
        return noKnowledge;
      }
    },
    keepKnowledge: (known) => {
      try {
        store.keepKnowledge(known);
      } catch (error) {
        tell(error);
      }
    },
  };
}
