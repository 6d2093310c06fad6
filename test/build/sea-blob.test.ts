import { expect, test } from "vitest";
import { flagHashAt, withAssets, withCodeCacheOf, withOption } from "../../build/sea-blob.ts";

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
const optionsOf = (...options: readonly string[]) =>
  Buffer.concat([size(options.length), ...options.map((option) => sized(option))]);

function blobOf(
  snapshot: Buffer,
  assets: Buffer = size(0),
  options: Buffer = optionsOf("--option"),
): Buffer {
  return Buffer.concat([header, sized("/path/main.cjs"), sized(snapshot), assets, options]);
}

function codeOf(module: number, flagHash = 7): Buffer {
  const code = Buffer.from(`code of a module, number ${module}`);
  code.writeUInt32LE(flagHash, flagHashAt);
  return code;
}

function codeCache(modules: readonly number[], flagHash?: number): Buffer {
  const entries = modules.flatMap((i) => [sized(`module/${i}`), sized(codeOf(i, flagHash))]);
  return Buffer.concat([size(modules.length), ...entries]);
}

const all = Array.from({ length: 400 }, (_, i) => i);

test("withCodeCacheOf() leaves the code of these modules, marked, and all else as it was", () => {
  const blob = blobOf(Buffer.concat([heap, codeCache(all)]));
  expect(withCodeCacheOf(blob, ["module/399", "module/17"], 0xdead_beef)).toEqual(
    blobOf(Buffer.concat([heap, codeCache([17, 399], 0xdead_beef)])),
  );
});

test("withCodeCacheOf() leaves an empty cache where no module is named", () => {
  const blob = blobOf(Buffer.concat([heap, codeCache(all)]));
  expect(withCodeCacheOf(blob, [], 1)).toEqual(blobOf(Buffer.concat([heap, size(0)])));
});

test("withCodeCacheOf() refuses modules that have no code there", () => {
  const blob = blobOf(Buffer.concat([heap, codeCache(all)]));
  expect(() => withCodeCacheOf(blob, ["module/1", "tls"], 1)).toThrow(
    "the snapshot holds no code cache of tls",
  );
});

test.for([
  { what: "no cache", snapshot: heap },
  { what: "a cache that is cut short", snapshot: codeCache(all).subarray(0, -1) },
  {
    what: "something behind the cache",
    snapshot: Buffer.concat([codeCache(all), Buffer.from("!")]),
  },
  { what: "too few modules", snapshot: codeCache(all.slice(0, 99)) },
])("withCodeCacheOf() refuses a snapshot with $what", ({ snapshot }) => {
  expect(() => withCodeCacheOf(blobOf(snapshot), [], 1)).toThrow(
    "no code cache where this version of Node is known to put it",
  );
});

const assetsOf = (assets: Readonly<Record<string, string>>) =>
  Buffer.concat([
    size(Object.keys(assets).length),
    ...Object.entries(assets).flatMap(([name, content]) => [sized(name), sized(content)]),
  ]);

test("withAssets() puts contents in, and leaves all else as it was", () => {
  const blob = blobOf(heap, assetsOf({ text: "", code: "old" }));
  const assets = { text: Buffer.from("a text"), code: Buffer.from("and its code") };
  expect(withAssets(blob, assets)).toEqual(
    blobOf(heap, assetsOf({ text: "a text", code: "and its code" })),
  );
});

test.for([
  { what: "has an asset other", assets: { text: "", other: "" } },
  { what: "has 1 assets", assets: { text: "" } },
  { what: "has 0 assets", assets: {} },
])("withAssets() refuses a blob that $what", ({ what, assets }) => {
  const wanted = { text: Buffer.alloc(0), code: Buffer.alloc(0) };
  expect(() => withAssets(blobOf(heap, assetsOf(assets)), wanted)).toThrow(what);
});

test("withOption() puts an option behind the others, and leaves all else as it was", () => {
  const assets = assetsOf({ text: "a text", code: "" });
  expect(withOption(blobOf(heap, assets, optionsOf("--one", "--two")), "--three")).toEqual(
    blobOf(heap, assets, optionsOf("--one", "--two", "--three")),
  );
});

test.for([
  { what: "no options", blob: blobOf(heap, size(0), optionsOf()) },
  { what: "options that are cut short", blob: blobOf(heap).subarray(0, -1) },
  { what: "something behind the options", blob: Buffer.concat([blobOf(heap), Buffer.from("!")]) },
  { what: "nothing behind the snapshot", blob: blobOf(heap, Buffer.alloc(0), Buffer.alloc(0)) },
])("withOption() refuses a blob with $what", ({ blob }) => {
  expect(() => withOption(blob, "--more")).toThrow(
    "the blob does not end with its options, as this version of Node is known to do",
  );
});
