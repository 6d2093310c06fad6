// What the build has to know of the executable's ELF file: where it begins to run, and where in its code there is room.
// Pure: bytes in, bytes out. A file that is not exactly of the expected form is refused.

/** A stretch of the file that is loaded as code and that nobody uses: the filling between two sections. */
export type Room = { readonly address: number; readonly offset: number; readonly size: number };

/** Where a program begins to run, and the room ahead of its code. */
export type Start = { readonly entry: number; readonly room: Room };

/**
 * Finds both.
 * @throws Error when this is no 64-bit little-endian program that begins in its section .text, behind empty filling.
 */
export function startOf(elf: Buffer): Start {
  if (!elf.subarray(0, identity.length).equals(identity)) throw refusal("is no 64-bit ELF file");
  const entry = Number(elf.readBigUInt64LE(entryAt));
  const sections = readSections(elf);
  const text = sections.find(({ name }) => name === ".text");
  if (text === undefined || !holds(text, entry)) throw refusal("does not begin in .text");
  const before = sections
    .filter(({ address, executable }) => executable && address < text.address)
    .toSorted((one, other) => endOf(one) - endOf(other))
    .at(-1);
  if (before === undefined) throw refusal("has no code before .text");
  // Loaded by one segment, sections lie in the file as they lie in memory.
  const room = {
    address: endOf(before),
    offset: before.offset + before.size,
    size: text.address - endOf(before),
  };
  const filling = elf.subarray(room.offset, text.offset);
  if (filling.length !== room.size || filling.some((byte) => byte !== 0)) {
    throw refusal("has something between .text and the section before it");
  }
  return { entry, room };
}

/**
 * The file with this code in the room, with which it begins.
 * @throws Error when there is too little room.
 */
export function beginningWith(elf: Buffer, room: Room, code: Buffer): Buffer {
  if (code.length > room.size) {
    throw refusal(`has room for ${room.size} bytes of code, and ${code.length} are to go in`);
  }
  const changed = Buffer.from(elf);
  code.copy(changed, room.offset);
  changed.writeBigUInt64LE(BigInt(room.address), entryAt);
  return changed;
}

/** Magic number, 64 bits, little-endian, version 1. */
const identity = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);

// Positions in the header and in a section's header (elf.h).
const entryAt = 0x18;
const sectionsAt = 0x28;
const sectionBytesAt = 0x3a;
const isExecutable = 4n;

type Section = {
  readonly name: string;
  readonly address: number;
  readonly offset: number;
  readonly size: number;
  readonly executable: boolean;
};

function readSections(elf: Buffer): Section[] {
  const [start, bytes, count, names] = [
    Number(elf.readBigUInt64LE(sectionsAt)),
    elf.readUInt16LE(sectionBytesAt),
    elf.readUInt16LE(sectionBytesAt + 2),
    elf.readUInt16LE(sectionBytesAt + 4),
  ];
  const headers = Array.from({ length: count }, (_, i) => {
    return elf.subarray(start + i * bytes, start + (i + 1) * bytes);
  });
  const namesAt = headers[names]?.readBigUInt64LE(0x18) ?? 0n;
  return headers.map((header) => {
    const nameAt = Number(namesAt) + header.readUInt32LE(0);
    return {
      name: elf.toString("latin1", nameAt, elf.indexOf(0, nameAt)),
      executable: (header.readBigUInt64LE(8) & isExecutable) !== 0n,
      address: Number(header.readBigUInt64LE(0x10)),
      offset: Number(header.readBigUInt64LE(0x18)),
      size: Number(header.readBigUInt64LE(0x20)),
    };
  });
}

function holds({ address, size }: Section, at: number): boolean {
  return at >= address && at < address + size;
}

function endOf({ address, size }: Section): number {
  return address + size;
}

function refusal(problem: string): Error {
  return new Error(`the executable ${problem}: look what the pinned Node's file is like now`);
}
