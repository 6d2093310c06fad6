// What is known of the node's backends, kept for one boot.
import { expect, test } from "vitest";
import type { Backend, Family } from "../../src/netfilter/table.ts";
import {
  type Answer,
  isProven,
  type Knowledge,
  noKnowledge,
  type Proof,
  parseKnowledge,
  renderKnowledge,
  withAnswer,
  withProof,
} from "../../src/node/knowledge.ts";

const decision = { backend: "nft", reason: "works", provisional: true } as const;
const proof = (backend: Backend, family: Family): Proof => ({ backend, family });
const good: Answer = {
  circumstances: "auto true",
  epochMs: 1_000,
  backend: "nft",
  problems: [],
  warnings: [],
};
const bad: Answer = { circumstances: "nft true", epochMs: 1_000, problems: ["x"], warnings: [] };
const half: Answer = { ...good, circumstances: "legacy true", warnings: ["y"] };
const full: Knowledge = {
  decision,
  proven: [proof("nft", "ipv4"), proof("legacy", "ipv6")],
  answers: [good, bad, half],
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

test("parseKnowledge() keeps the choice of a version that knew no families, and takes nothing as proven", () => {
  const text = JSON.stringify({
    bootId: "boot",
    decision,
    proven: ["nft"],
    ready: [{ circumstances: "auto true", backend: "nft" }],
    refusal: { message: "no tools", epochMs: 1_000 },
  });
  expect(parseKnowledge(text, "boot")).toEqual({ proven: [], decision });
});

test("withProof() settles the choice when it is the backend that works", () => {
  const settled = { ...decision, provisional: false };
  expect(withProof({ proven: [], decision }, "nft", ["ipv4"])).toEqual({
    proven: [proof("nft", "ipv4")],
    decision: settled,
  });
  expect(withProof({ proven: [proof("nft", "ipv4")], decision }, "legacy", ["ipv4"])).toEqual({
    proven: [proof("nft", "ipv4"), proof("legacy", "ipv4")],
    decision,
  });
  expect(withProof(noKnowledge, "nft", ["ipv4", "ipv6"])).toEqual({
    proven: [proof("nft", "ipv4"), proof("nft", "ipv6")],
  });
});

test("withProof() settles nothing that was decided without seeing all", () => {
  const unsure = { ...decision, incomplete: true };
  expect(withProof({ proven: [], decision: unsure }, "nft", ["ipv4"])).toEqual({
    proven: [proof("nft", "ipv4")],
    decision: unsure,
  });
});

test("withProof() forgets answers with a fault in them when something new has worked", () => {
  expect(withProof(full, "nft", ["ipv6"])).toMatchObject({ answers: [good] });
  expect(withProof(full, "nft", ["ipv4"])).toMatchObject({ answers: [good, bad, half] });
});

const wanted: [Backend, Family[], boolean][] = [
  ["nft", ["ipv4"], true],
  ["nft", ["ipv6"], false],
  ["nft", ["ipv4", "ipv6"], false],
  ["legacy", ["ipv6"], true],
];

test.each(wanted)("isProven() of %s for %j: %s", (backend, families, proven) => {
  expect(isProven(full, backend, families)).toBe(proven);
});

test("withAnswer() keeps the latest four, each once", () => {
  const found = ["a", "b", "c", "d", "b", "e"].map((circumstances) => {
    return { ...good, circumstances };
  });
  const known = found.reduce<Knowledge>(withAnswer, noKnowledge);
  expect(known.answers?.map(({ circumstances }) => circumstances)).toEqual(["e", "b", "d", "c"]);
});
