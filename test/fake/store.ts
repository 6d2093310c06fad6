// A store in memory, and a memory of the node.

import { type AttachmentRecord, recordName } from "../../src/attachment/record.ts";
import type { Entry, Store } from "../../src/attachment/store.ts";
import { Fault } from "../../src/fault.ts";
import { type Knowledge, noKnowledge } from "../../src/node/knowledge.ts";
import type { Memory } from "../../src/node/memory.ts";

export type MemoryStore = Store & {
  /** By the names that their files would have. */
  readonly records: Map<string, AttachmentRecord>;
  /** The netns that are locked, by their numbers; a test may add one, which is then another process's. */
  readonly locked: Set<number>;
  /** When all of them were written. */
  writtenMs: number;
};

export function makeMemoryStore(): MemoryStore {
  const records = new Map<string, AttachmentRecord>();
  const locked = new Set<number>();
  let sinceBootMs = 0;
  const store: MemoryStore = {
    records,
    locked,
    writtenMs: 0,
    read: (key) => records.get(recordName(key)),
    write: (record) => {
      records.set(recordName(record), record);
    },
    remove: (key) => {
      records.delete(recordName(key));
    },
    removeNone: () => undefined,
    removeThis: (record) => {
      const isThis = records.get(recordName(record)) === record;
      if (isThis) records.delete(recordName(record));
      return isThis || !records.has(recordName(record));
    },
    entries: () =>
      [...records.values()].map(({ network, containerId, ifName }): Entry => {
        return { key: { network, containerId, ifName }, writtenMs: store.writtenMs };
      }),
    ofContainer: (containerId) =>
      [...records.values()].filter((record) => record.containerId === containerId),
    ofInode: (inode) => [...records.values()].filter(({ netns }) => netns.inode === inode),
    moment: () => {
      sinceBootMs += 1;
      return { boot: "first", sinceBootMs };
    },
    lock: ({ path, inode }) => {
      if (locked.has(inode)) {
        const message = `netns ${path} is being worked on by another process`;
        return Promise.reject(new Fault("try-again", message));
      }
      locked.add(inode);
      return Promise.resolve({ release: () => void locked.delete(inode) });
    },
    sweep: () => undefined,
    prepare: () => undefined,
  };
  return store;
}

/** A memory that lasts as long as the test. */
export function makeMemory(): Memory {
  let known: Knowledge = noKnowledge;
  return {
    read: () => known,
    keep: (kept) => {
      known = kept;
    },
  };
}
