// What is known of the node's backends, kept for one boot.
import { expect, test } from "vitest";
import {
  type Knowledge,
  noKnowledge,
  parseKnowledge,
  renderKnowledge,
  withProof,
  withReadiness,
} from "../../src/attachment/knowledge.ts";

const decision = { backend: "nft", reason: "works", provisional: true } as const;
const full: Knowledge = {
  decision,
  proven: ["nft", "legacy"],
  ready: [{ circumstances: "auto true", backend: "nft" }],
  refusal: { message: "no tools", epochMs: 1_000, circumstances: "nft false" },
};

test.each([full, noKnowledge, { proven: [], decision }])(
  "parseKnowledge() takes back %j",
  (known) => {
    expect(parseKnowledge(renderKnowledge(known, "boot"), "boot")).toEqual(known);
  },
);

const useless: [when: string, text: string][] = [
  ["it is of another boot", renderKnowledge(full, "other")],
  ["it is empty", ""],
  ["it is cut short", renderKnowledge(full, "boot").slice(0, -3)],
  ["a backend is unknown", '{"bootId":"boot","proven":["bpf"]}'],
];

test.each(useless)("parseKnowledge() knows nothing when %s", (_, text) => {
  expect(parseKnowledge(text, "boot")).toEqual(noKnowledge);
});

test("withProof() settles the choice when it is the backend that works", () => {
  const settled = { ...decision, provisional: false };
  expect(withProof({ proven: [], decision }, "nft")).toEqual({
    proven: ["nft"],
    decision: settled,
  });
  expect(withProof({ proven: ["nft"], decision }, "legacy")).toEqual({
    proven: ["nft", "legacy"],
    decision,
  });
  expect(withProof(noKnowledge, "nft")).toEqual({ proven: ["nft"] });
});

test("withProof() forgets a refusal", () => {
  expect(withProof(full, "nft")).toEqual({
    proven: ["nft", "legacy"],
    ready: full.ready,
    decision: { ...decision, provisional: false },
  });
});

test("withReadiness() keeps the latest four, each once", () => {
  const found = ["a", "b", "c", "d", "b", "e"].map((circumstances) => {
    return { circumstances, backend: "nft" } as const;
  });
  const known = found.reduce<Knowledge>(withReadiness, noKnowledge);
  expect(known.ready?.map(({ circumstances }) => circumstances)).toEqual(["e", "b", "d", "c"]);
});
