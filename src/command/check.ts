// CHECK: is the attachment redirected as was intended? Reads all backends, changes nothing.
import { type AttachmentRecord, familiesIn } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import { familiesOf } from "../mesh/profile.ts";
import type { Ruleset } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import { chooseFor } from "../node/backend.ts";
import { fewOf } from "../text/telling.ts";
import { renderDrift } from "../upkeep/drift.ts";
import { familiesNow } from "../upkeep/families.ts";
import { enter } from "../upkeep/netns.ts";
import { type Expected, type Observed, observe } from "../upkeep/observe.ts";
import { deriveIntent } from "../upkeep/pod/intent.ts";
import { expectedBy } from "../upkeep/recorded.ts";
import { settled } from "../upkeep/settled.ts";
import { nameOf } from "../upkeep/task.ts";
import { askingOf, type Call, type Told } from "./call.ts";

/**
 * Compares the netns with the attachment's record, or, where there is none, with what ADD would make of the conf.
 * @throws CniError 100 with one line for each drift; what the tools threw, which is no drift.
 */
export async function check(call: Call, told: Told): Promise<string> {
  await enter(call, call.subject, async (here) => {
    const { netns } = here;
    const observed = await settled(call, here, async (record) => {
      const expected =
        record === undefined
          ? await expectedByConf(call, netns, told)
          : await expectedByRecord(call, record, told);
      return expected === undefined ? undefined : await observe(call, netns, expected);
    });
    if (observed !== undefined) judge(call, observed);
  });
  return "";
}

async function expectedByRecord(
  call: Call,
  record: AttachmentRecord,
  told: Told,
): Promise<Expected> {
  const expected = await expectedBy(call, record);
  told.families = familiesIn(record);
  told.backend = expected.choice.backend;
  return expected;
}

// Nothing is expected of a pod that ADD left alone, or only simulated.
async function expectedByConf(call: Call, netns: Netns, told: Told): Promise<Expected | undefined> {
  const derived = await deriveIntent(askingOf(call), readPrevResult(call.network));
  if (derived.kind === "skip" || call.settings.simulate) return undefined;
  const { containerId } = call.request;
  call.log.warn({ containerId }, "no record of this attachment; checking against the conf");
  const { intent, optional } = await familiesNow(call, netns, derived);
  const wanted = familiesOf(intent);
  const required = wanted.filter((family) => !optional.includes(family));
  const { choice } = await chooseFor(call, { wanted, required });
  told.families = wanted;
  told.backend = choice.backend;
  const isThere = ({ family }: Ruleset) => choice.tools.has(family) || !optional.includes(family);
  const rulesets = intent.rulesets.filter(isThere);
  const { standFor } = call.settings.profile;
  return { rulesets, standFor, choice, settings: intent.settings, open: [], optional };
}

function judge({ subject }: Call, observed: Observed): void {
  if (observed.kind === "as-intended") return;
  if (observed.kind === "failed") throw observed.error;
  const { backend, drifts } = observed;
  const count = drifts.length === 1 ? "1 drift" : `${drifts.length} drifts`;
  throw new CniError(
    errorCode.drift,
    `${nameOf(subject)} is not redirected as intended: ${count} (${backend})`,
    { details: fewOf(drifts.map(renderDrift)).join("\n") },
  );
}
