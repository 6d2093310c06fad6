// The blob that Node makes for a single executable, with less in it. Its form is Node's own and undocumented (node_sea.cc
// and node_snapshotable.cc of the pinned version); a blob that is not exactly of this form is refused.

/** A position in the blob, moving on with what is read. */
type Cursor = { at: number };

/**
 * The blob without the code cache of Node's own modules: 4 MB that each start copies. It is for modules that are not in the
 * snapshot, which most commands need none of; without it, those that are loaded later are compiled from their source.
 * @throws Error when the blob is of another form.
 */
export function withoutCodeCache(blob: Buffer): Buffer {
  const cursor = { at: headerBytes };
  // The script's path.
  skip(blob, cursor);
  const sizeAt = cursor.at;
  const snapshotAt = sizeAt + sizeBytes;
  skip(blob, cursor);
  const snapshot = blob.subarray(snapshotAt, cursor.at);
  const lean = Buffer.concat([snapshot.subarray(0, findCodeCache(snapshot)), size(0)]);
  return Buffer.concat([
    blob.subarray(0, sizeAt),
    size(lean.length),
    lean,
    blob.subarray(cursor.at),
  ]);
}

/** Magic number and flags, four bytes each, and a byte that says which options are taken from outside. */
const headerBytes = 9;
const sizeBytes = 8;

// The last part of the snapshot: a count, and for each module its name and its code, each behind its size.
function findCodeCache(snapshot: Buffer): number {
  for (let start = 0; start <= snapshot.length - sizeBytes; start++) {
    const count = readSize(snapshot, { at: start });
    if (count >= fewest && count <= most && isCodeCache(snapshot, start, count)) return start;
  }
  throw new Error("the snapshot holds no code cache where this version of Node is known to put it");
}

/** Node has some 390 modules. */
const [fewest, most] = [100, 2_000];

function isCodeCache(snapshot: Buffer, start: number, count: number): boolean {
  const cursor = { at: start + sizeBytes };
  for (let i = 0; i < 2 * count; i++) {
    skip(snapshot, cursor);
    if (cursor.at > snapshot.length) return false;
  }
  return cursor.at === snapshot.length;
}

function skip(bytes: Buffer, cursor: Cursor): void {
  const length = readSize(bytes, cursor);
  cursor.at += length;
}

// Past the end, and sizes that no file has, end any attempt to go on.
function readSize(bytes: Buffer, cursor: Cursor): number {
  if (cursor.at + sizeBytes > bytes.length) return Number.MAX_SAFE_INTEGER;
  const value = bytes.readBigUInt64LE(cursor.at);
  cursor.at += sizeBytes;
  return value > bytes.length ? Number.MAX_SAFE_INTEGER : Number(value);
}

function size(value: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
