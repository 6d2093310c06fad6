// The blob that Node makes for a single executable, with less in it. Its form is Node's own and undocumented (node_sea.cc
// and node_snapshotable.cc of the pinned version); a blob that is not exactly of this form is refused.

/** A position in the blob, moving on with what is read. */
type Cursor = { at: number };

/**
 * The blob with the code cache of only these of Node's own modules: all of it is 4 MB, which each start would copy, and it is
 * for modules that are not in the snapshot. Those that are loaded later and not among these are compiled from source.
 * The code is marked as made under V8's flags of `flagHash`: code under others is not taken.
 * @throws Error when the blob is of another form, or has no code for one of the modules.
 */
export function withCodeCacheOf(
  blob: Buffer,
  modules: readonly string[],
  flagHash: number,
): Buffer {
  const cursor = { at: headerBytes };
  // The script's path.
  skip(blob, cursor);
  const sizeAt = cursor.at;
  const snapshotAt = sizeAt + sizeBytes;
  skip(blob, cursor);
  const snapshot = blob.subarray(snapshotAt, cursor.at);
  const { start, entries } = findCodeCache(snapshot);
  const kept = entries.filter(({ module }) => modules.includes(module));
  if (kept.length !== modules.length) {
    const names = kept.map(({ module }) => module);
    const absent = modules.filter((module) => !names.includes(module));
    throw new Error(`the snapshot holds no code cache of ${absent.join(", ")}`);
  }
  const cache = [size(kept.length), ...kept.map((entry) => marked(entry, flagHash))];
  const lean = Buffer.concat([snapshot.subarray(0, start), ...cache]);
  return Buffer.concat([
    blob.subarray(0, sizeAt),
    size(lean.length),
    lean,
    blob.subarray(cursor.at),
  ]);
}

/**
 * The blob with these contents of its assets, which it has by these names.
 * @throws Error when the blob is of another form, or has other assets.
 */
export function withAssets(blob: Buffer, assets: Readonly<Record<string, Buffer>>): Buffer {
  const cursor = { at: headerBytes };
  // The script's path, and the snapshot.
  skip(blob, cursor);
  skip(blob, cursor);
  const start = cursor.at;
  const names = Object.keys(assets);
  const count = readSize(blob, cursor);
  for (let i = 0; i < count && cursor.at < blob.length; i++) {
    const nameAt = cursor.at + sizeBytes;
    skip(blob, cursor);
    const name = blob.toString("utf8", nameAt, cursor.at);
    if (!names.includes(name)) throw new Error(`the blob has an asset ${name}`);
    skip(blob, cursor);
  }
  if (count !== names.length) throw new Error(`the blob has ${count} assets`);
  const entries = Object.entries(assets).flatMap(([name, content]) => [
    sized(Buffer.from(name)),
    sized(content),
  ]);
  return Buffer.concat([
    blob.subarray(0, start),
    size(count),
    ...entries,
    blob.subarray(cursor.at),
  ]);
}

/**
 * The blob with one more of Node's or V8's options, behind those that it has.
 * @throws Error when the blob is of another form, or has no options.
 */
export function withOption(blob: Buffer, option: string): Buffer {
  const cursor = { at: headerBytes };
  // The script's path, and the snapshot; then the assets, each with its name.
  skip(blob, cursor);
  skip(blob, cursor);
  skipAll(blob, cursor, 2 * readSize(blob, cursor));
  const countAt = cursor.at;
  const count = readSize(blob, cursor);
  skipAll(blob, cursor, count);
  if (count === 0 || cursor.at !== blob.length) {
    throw new Error(
      "the blob does not end with its options, as this version of Node is known to do",
    );
  }
  return Buffer.concat([
    blob.subarray(0, countAt),
    size(count + 1),
    blob.subarray(countAt + sizeBytes),
    sized(Buffer.from(option)),
  ]);
}

/** What is kept of one of Node's modules: its name and its code, each behind its size. */
type Entry = { readonly module: string; readonly bytes: Buffer };

/** Where V8 keeps the hash of its flags in code that it made for a cache (code-serializer.h), four bytes. */
export const flagHashAt = 12;

function marked({ module, bytes }: Entry, flagHash: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt32LE(flagHash, sizeBytes + Buffer.byteLength(module) + sizeBytes + flagHashAt);
  return copy;
}

/** Magic number and flags, four bytes each, and a byte that says which options are taken from outside. */
const headerBytes = 9;
const sizeBytes = 8;

// The last part of the snapshot: a count, and the entries.
function findCodeCache(snapshot: Buffer): { start: number; entries: readonly Entry[] } {
  for (let start = 0; start <= snapshot.length - sizeBytes; start++) {
    const count = readSize(snapshot, { at: start });
    if (count < fewest || count > most || !isCodeCache(snapshot, start, count)) continue;
    return { start, entries: readEntries(snapshot, start + sizeBytes) };
  }
  throw new Error("the snapshot holds no code cache where this version of Node is known to put it");
}

/** Node has some 390 modules. */
const [fewest, most] = [100, 2_000];

function isCodeCache(snapshot: Buffer, start: number, count: number): boolean {
  const cursor = { at: start + sizeBytes };
  skipAll(snapshot, cursor, 2 * count);
  return cursor.at === snapshot.length;
}

function readEntries(snapshot: Buffer, start: number): Entry[] {
  const cursor = { at: start };
  const entries: Entry[] = [];
  while (cursor.at < snapshot.length) {
    const entryAt = cursor.at;
    skip(snapshot, cursor);
    const module = snapshot.toString("utf8", entryAt + sizeBytes, cursor.at);
    skip(snapshot, cursor);
    entries.push({ module, bytes: snapshot.subarray(entryAt, cursor.at) });
  }
  return entries;
}

function skip(bytes: Buffer, cursor: Cursor): void {
  const length = readSize(bytes, cursor);
  cursor.at += length;
}

function skipAll(bytes: Buffer, cursor: Cursor, count: number): void {
  for (let i = 0; i < count && cursor.at <= bytes.length; i++) skip(bytes, cursor);
}

// Past the end, and sizes that no file has, end any attempt to go on.
function readSize(bytes: Buffer, cursor: Cursor): number {
  if (cursor.at + sizeBytes > bytes.length) return Number.MAX_SAFE_INTEGER;
  const value = bytes.readBigUInt64LE(cursor.at);
  cursor.at += sizeBytes;
  return value > bytes.length ? Number.MAX_SAFE_INTEGER : Number(value);
}

function sized(content: Buffer): Buffer {
  return Buffer.concat([size(content.length), content]);
}

function size(value: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
