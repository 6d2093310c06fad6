import { expect, test } from "vitest";
import { withoutCodeCache } from "../../build/sea-blob.ts";

const size = (value: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

const sized = (content: Buffer | string) => {
  const bytes = Buffer.from(content);
  return Buffer.concat([size(bytes.length), bytes]);
};

const header = Buffer.from([0x20, 0xda, 0x43, 0x01, 0x13, 0, 0, 0, 0]);
const heap = Buffer.from("the heap, with numbers in it \x90\x01\0\0\0\0\0\0 and more");
const options = sized("--option");

function blobOf(snapshot: Buffer): Buffer {
  return Buffer.concat([header, sized("/path/main.cjs"), sized(snapshot), options]);
}

function codeCache(modules: number): Buffer {
  const entries = Array.from({ length: modules }, (_, i) => [sized(`module/${i}`), sized("code")]);
  return Buffer.concat([size(modules), ...entries.flat()]);
}

test("withoutCodeCache() leaves an empty cache, and all else as it was", () => {
  const blob = blobOf(Buffer.concat([heap, codeCache(400)]));
  expect(withoutCodeCache(blob)).toEqual(blobOf(Buffer.concat([heap, size(0)])));
});

test.for([
  { what: "no cache", snapshot: heap },
  { what: "a cache that is cut short", snapshot: codeCache(400).subarray(0, -1) },
  {
    what: "something behind the cache",
    snapshot: Buffer.concat([codeCache(400), Buffer.from("!")]),
  },
  { what: "too few modules", snapshot: codeCache(99) },
])("withoutCodeCache() refuses a snapshot with $what", ({ snapshot }) => {
  expect(() => withoutCodeCache(blobOf(snapshot))).toThrow("no code cache");
});
