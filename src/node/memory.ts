// Where it is kept what was found out about the node: <state-dir>/backend.json, for this boot. Edge. Whatever goes wrong with it
// fails no command: what cannot be kept or read is found out again.
import { join, resolve } from "node:path";
import { bootId } from "../state/boot.ts";
import { makeDirectory, readOwn, replaceFile, requireOwnDirectory } from "../state/file.ts";
import { type Knowledge, noKnowledge, parseKnowledge, renderKnowledge } from "./knowledge.ts";

/** What is known of the node, from one call to the next. */
export type Memory = {
  /** What was found out since the node booted. @throws Fault io where others than root can write it. */
  readonly read: () => Knowledge;
  /** Remembers it; another writer's may win, and then something is found out twice. @throws Fault io */
  readonly keep: (known: Knowledge) => void;
};

/** The memory in a state directory, which is made when it is first needed. */
export function openMemory(stateDir: string): Memory {
  const top = resolve(stateDir);
  const file = join(top, "backend.json");
  return {
    read: () => {
      const text = requireOwnDirectory(top) ? readOwn(file) : undefined;
      return text === undefined ? noKnowledge : parseKnowledge(text, bootId());
    },
    keep: (known) => {
      if (!requireOwnDirectory(top)) makeDirectory(top);
      replaceFile(file, renderKnowledge(known, bootId()));
    },
  };
}

/** The same memory, which never throws; `tell` is given what went wrong with it. */
export function forgiving(memory: Memory, tell: (error: unknown) => void): Memory {
  return {
    read: () => {
      try {
        return memory.read();
      } catch (error) {
        tell(error);
        return noKnowledge;
      }
    },
    keep: (known) => {
      try {
        memory.keep(known);
      } catch (error) {
        tell(error);
      }
    },
  };
}
