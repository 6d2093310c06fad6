// The netns' close-wait setting: as the pod wants it while an attachment is there that does, else as it was before us.
import type { AttachmentRecord } from "../attachment/record.ts";
import { CniError } from "../cni/error.ts";
import { type Call, lookingOf, subjectOf } from "../command/call.ts";
import type { Netns } from "../netns/path.ts";
import { closeWaitSetting, readSysctl, writeSysctl } from "../netns/sysctl.ts";

/**
 * Brings the setting to what the record intends. After the rules: they load conntrack, which has the setting.
 * What was there before is kept in the record first (`keep`), so that no death in between loses it.
 * @returns the record, with what the setting was before the first of us.
 * @throws CniError 11 or 102, which names pod, annotation and file.
 */
export async function setCloseWait(
  call: Call,
  { netns, record }: { readonly netns: Netns; readonly record: AttachmentRecord },
  keep: (record: AttachmentRecord) => void,
): Promise<AttachmentRecord> {
  const { closeWaitBefore, ...rest } = record;
  const wanted = record.intent.closeWaitSeconds;
  try {
    if (wanted !== undefined) {
      const before =
        closeWaitBefore ?? (await readSysctl(netns, closeWaitSetting, lookingOf(call)));
      const told = { ...record, closeWaitBefore: before };
      if (closeWaitBefore === undefined) keep(told);
      await write(call, netns, String(wanted));
      return told;
    }
    if (closeWaitBefore !== undefined) await write(call, netns, closeWaitBefore);
    return rest;
  } catch (error) {
    throw told(call, error);
  }
}

/** Gives the setting back as it was before the first attachment, if one of them changed it. */
export async function giveBackCloseWait(
  call: Call,
  netns: Netns,
  { closeWaitBefore }: Pick<AttachmentRecord, "closeWaitBefore">,
): Promise<void> {
  if (closeWaitBefore !== undefined) await write(call, netns, closeWaitBefore);
}

async function write(call: Call, netns: Netns, value: string): Promise<void> {
  await writeSysctl(netns, { name: closeWaitSetting, value }, lookingOf(call));
}

function told(call: Call, error: unknown): unknown {
  if (!(error instanceof CniError) || !error.message.startsWith("a kernel setting")) return error;
  return new CniError(
    error.code,
    `${subjectOf(call)} wants a close-wait-timeout, and ${error.message}`,
    {
      details: `${error.details}; it is the annotation config.linkerd.io/close-wait-timeout, or the conf's`,
      cause: error,
    },
  );
}
