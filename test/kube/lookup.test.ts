// A name's addresses: one question for all tries, and another one when it failed.
import type { LookupAddress } from "node:dns";
import { expect, test } from "vitest";
import { sharedLookup } from "../../src/kube/lookup.ts";

const found = [
  { address: "192.0.2.1", family: 4 },
  { address: "2001:db8::1", family: 6 },
];

/** A look-up whose resolver answers by these, in turn; and what it was asked. */
function lookupBy(...answers: (() => Promise<LookupAddress[]>)[]) {
  const asked: string[] = [];
  const lookup = sharedLookup((name) => {
    asked.push(name);
    return answers.shift()?.() ?? new Promise(() => undefined);
  });
  const ask = (all: boolean) =>
    new Promise((resolve) => {
      lookup("kube.example", { all }, (...told) => resolve(told));
    });
  return { asked, ask };
}

test("sharedLookup() asks once for all who want to know, at whatever time", async () => {
  const { asked, ask } = lookupBy(() => Promise.resolve(found));
  const both = [ask(true), ask(false)];
  expect([...(await Promise.all(both)), await ask(true)]).toEqual([
    [null, found],
    [null, "192.0.2.1", 4],
    [null, found],
  ]);
  expect(asked).toEqual(["kube.example"]);
});

test("sharedLookup() asks again when the resolver failed", async () => {
  const away = new Error("getaddrinfo EAI_AGAIN kube.example");
  const { asked, ask } = lookupBy(
    () => Promise.reject(away),
    () => Promise.resolve(found),
  );
  expect([await ask(true), await ask(true)]).toEqual([
    [away, ""],
    [null, found],
  ]);
  expect(asked).toHaveLength(2);
});

test("sharedLookup() finds what the node itself knows", async () => {
  const lookup = sharedLookup();
  const [error, addresses] = await new Promise<unknown[]>((resolve) => {
    lookup("localhost", { all: true }, (...told) => resolve(told));
  });
  expect(error).toBeNull();
  expect(addresses).toContainEqual({ address: "127.0.0.1", family: 4 });
});
