// Which attachments a netns has, by their records. A netns has one ruleset, that of the latest ADD. An attachment that is
// removed leaves the rules to those that remain.
import { isDeepStrictEqual } from "node:util";
import {
  type AttachmentKey,
  type AttachmentRecord,
  isAbout,
  isLater,
  latestOf,
  type Place,
} from "../attachment/record.ts";
import { type Befores, beforesIn, withBefores } from "../attachment/settings.ts";
import type { Store } from "../attachment/store.ts";
import type { NetnsId } from "../netns/identity.ts";
import type { Entered, Task } from "./task.ts";

/** A netns' attachments of one container. */
export type Attached = {
  /** The attachment's record, whichever netns it is about. */
  readonly earlier: AttachmentRecord | undefined;
  /** Its own, if it has a record about this very netns: after a reboot or a reused id it is about another. */
  readonly own: AttachmentRecord | undefined;
  readonly siblings: readonly AttachmentRecord[];
  /** The one whose rules the netns has: the last whose ADD came to its end. */
  readonly latest: AttachmentRecord | undefined;
  /** What the netns' kernel settings were before any of them changed them. */
  readonly befores: Befores;
};

/** The attachments of the container in this netns. @throws Fault io as the store's read does. */
export function attachedTo({ store }: Pick<Task, "store">, { key, netns }: Here): Attached {
  const place = placeOf(store, netns);
  const earlier = store.read(key);
  const own = earlier !== undefined && isAbout(earlier, place) ? earlier : undefined;
  const siblings = store
    .ofContainer(key.containerId)
    .filter((record) => isAbout(record, place) && !isOf(key, record));
  const all = own === undefined ? siblings : [own, ...siblings];
  const applied = all.filter(({ state }) => state !== "intended");
  return {
    earlier,
    own,
    siblings,
    latest: latestOf(applied) ?? latestOf(all),
    befores: beforesIn(all),
  };
}

/** The netns as records are compared with it. */
export function placeOf(store: Store, { device, inode }: NetnsId): Place {
  return { device, inode, boot: store.moment().boot };
}

function isOf(key: AttachmentKey, { network, ifName }: AttachmentRecord): boolean {
  return network === key.network && ifName === key.ifName;
}

type Here = Pick<Entered, "key" | "netns">;

/**
 * Leaves what a record tells of the netns to those that stay: what the settings were before, and its rules, if they are the
 * last that were written.
 */
export function handOver(
  store: Store,
  record: AttachmentRecord,
  siblings: readonly AttachmentRecord[],
): void {
  const heir = latestOf(siblings);
  if (heir === undefined) return;
  const isLast = record.state !== "intended" && isLater(record, heir);
  const { network, containerId, ifName, pod, netns } = heir;
  const kept = isLast ? record : heir;
  const settings = withBefores(kept.settings, beforesIn([heir, record]));
  if (!isLast && isDeepStrictEqual(settings, heir.settings)) return;
  store.write({ ...kept, ...{ network, containerId, ifName, pod, netns }, settings });
}
