// The protocol's texts: what is handed on is handed on whole, and what is kept reads back as it was.
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseRecordName, recordName } from "../../src/attachment/record.ts";
import { parseRecord, renderRecord } from "../../src/attachment/record-text.ts";
import { CniError, renderError } from "../../src/cni/error.ts";
import { rawMembers } from "../../src/cni/raw-json.ts";
import { parseRequest } from "../../src/cni/request.ts";
import { buildRulesets } from "../../src/mesh/linkerd/ruleset.ts";
import { families } from "../../src/netfilter/table.ts";
import { someRecord } from "../fake/record.ts";
import { anyValue } from "./arbitrary/conf.ts";
import { intent } from "./arbitrary/intent.ts";
import { anyText } from "./arbitrary/text.ts";
import { holds, timeoutMs } from "./budget.ts";

const part = 0.02;

test("each member's source text is its value, whatever stands around it", {
  timeout: timeoutMs,
}, async () => {
  const blank = fc.constantFrom("", " ", "\n\t ", "\r\n");
  const entry = fc.tuple(blank, anyText, blank, anyValue, blank);
  const property = fc.property(fc.array(entry, { maxLength: 5 }), (entries) => {
    const members = entries.map(([before, key, between, value, after]) => {
      return `${before}${JSON.stringify(key)}${between}:${between}${JSON.stringify(value)}${after}`;
    });
    const found = rawMembers(`{${members.join(",")}}`);
    expect(found.map(({ key, text }) => [key, JSON.parse(text)])).toEqual(
      entries.map(([, key, , value]) => [key, JSON.parse(JSON.stringify(value))]),
    );
  });
  await holds(property, { part });
});

test("a record reads back as it was written", { timeout: timeoutMs }, async () => {
  const property = fc.property(intent, anyText, (one, text) => {
    const record = {
      ...someRecord,
      intent: one,
      rulesets: buildRulesets(one, families),
      backendReason: text,
    };
    expect(parseRecord(renderRecord(record))).toEqual(record);
  });
  await holds(property, { part });
});

test("a record's name leads back to its attachment, and to no other place", {
  timeout: timeoutMs,
}, async () => {
  // An environment holds no NUL.
  const word = anyText.map((text) => text.replaceAll("\0", ""));
  const property = fc.property(word, word, (containerId, ifName) => {
    const key = { network: "net", containerId, ifName };
    if (!isRequest(key)) return;
    const name = recordName(key);
    expect(parseRecordName(name)).toEqual(key);
    expect(name).not.toMatch(/[/\0]/);
  });
  await holds(property, { part });
});

test("an error is one line of JSON", { timeout: timeoutMs }, async () => {
  const property = fc.property(anyText, anyText, (message, details) => {
    const text = renderError(new CniError(999, message, { details }), "1.1.0");
    expect(text).not.toMatch(/[\n\r]/);
    expect(JSON.parse(text)).toMatchObject({ cniVersion: "1.1.0", code: 999, msg: message });
  });
  await holds(property, { part });
});

function isRequest({ containerId, ifName }: { containerId: string; ifName: string }): boolean {
  try {
    const names = { CNI_CONTAINERID: containerId, CNI_IFNAME: ifName };
    parseRequest({ CNI_COMMAND: "ADD", CNI_NETNS: "/a", CNI_PATH: "/b", ...names });
    return true;
  } catch {
    // No runtime's call gets as far as a record then.
    return false;
  }
}
