import { expect, test } from "vitest";
import { beginningWith, startOf } from "../../build/elf.ts";

type Part = {
  readonly name: string;
  readonly address: number;
  readonly size: number;
  readonly flags?: number;
};

/** Where files that are made here are loaded: as far behind their position in the file. */
const base = 0x40_0000;
const code = 4;

const parts: readonly Part[] = [
  { name: "", address: 0, size: 0 },
  { name: ".rodata", address: base + 0x100, size: 0x20, flags: 2 },
  { name: ".init", address: base + 0x200, size: 0x10, flags: code },
  { name: ".plt", address: base + 0x210, size: 0x30, flags: code },
  { name: ".text", address: base + 0x300, size: 0x80, flags: code },
  { name: ".fini", address: base + 0x380, size: 0x10, flags: code },
];
const entry = base + 0x340;

/** An ELF file of these sections, each full of ones, with their headers and names behind them. */
function elfOf(sections: readonly Part[], begin = entry): Buffer {
  const names = Buffer.from(sections.map(({ name }) => `${name}\0`).join(""));
  const [namesAt, headersAt] = [0x400, 0x500];
  const elf = Buffer.alloc(headersAt + 64 * (sections.length + 1));
  elf.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  elf.writeBigUInt64LE(BigInt(begin), 0x18);
  elf.writeBigUInt64LE(BigInt(headersAt), 0x28);
  elf.writeUInt16LE(64, 0x3a);
  elf.writeUInt16LE(sections.length + 1, 0x3c);
  elf.writeUInt16LE(sections.length, 0x3e);
  names.copy(elf, namesAt);
  let nameAt = 0;
  for (const [i, { name, address, size, flags = 0 }] of sections.entries()) {
    const header = elf.subarray(headersAt + 64 * i);
    header.writeUInt32LE(nameAt, 0);
    header.writeBigUInt64LE(BigInt(flags), 8);
    header.writeBigUInt64LE(BigInt(address), 0x10);
    header.writeBigUInt64LE(BigInt(Math.max(0, address - base)), 0x18);
    header.writeBigUInt64LE(BigInt(size), 0x20);
    elf.fill(1, Math.max(0, address - base), Math.max(0, address - base) + size);
    nameAt += name.length + 1;
  }
  elf.writeBigUInt64LE(BigInt(namesAt), headersAt + 64 * sections.length + 0x18);
  return elf;
}

const room = { address: base + 0x240, offset: 0x240, size: 0xc0 };

test("startOf() finds where the program begins, and the filling ahead of its code", () => {
  expect(startOf(elfOf(parts))).toEqual({ entry, room });
});

test("beginningWith() puts code in the room, lets the program begin there, and leaves all else", () => {
  const stub = Buffer.from("\x90code");
  const expected = elfOf(parts, room.address);
  stub.copy(expected, room.offset);
  expect(beginningWith(elfOf(parts), room, stub)).toEqual(expected);
});

test("beginningWith() refuses code that is larger than the room", () => {
  expect(() => beginningWith(elfOf(parts), room, Buffer.alloc(0xc1))).toThrow(
    "the executable has room for 192 bytes of code, and 193 are to go in",
  );
});

const withByte = (at: number, value: number) => {
  const elf = elfOf(parts);
  elf[at] = value;
  return elf;
};
const without = (name: string) => parts.filter((part) => part.name !== name);

test.for([
  { elf: Buffer.alloc(0), problem: "is no 64-bit ELF file" },
  { elf: withByte(4, 1), problem: "is no 64-bit ELF file" },
  { elf: withByte(5, 2), problem: "is no 64-bit ELF file" },
  { elf: elfOf(parts, room.address), problem: "does not begin in .text" },
  { elf: elfOf(parts, base + 0x380), problem: "does not begin in .text" },
  { elf: elfOf(without(".text")), problem: "does not begin in .text" },
  {
    elf: elfOf(parts.filter(({ address }) => address === 0 || address >= base + 0x300)),
    problem: "has no code before .text",
  },
  {
    elf: withByte(0x2ff, 0x90),
    problem: "has something between .text and the section before it",
  },
  {
    elf: elfOf([...parts, { name: ".more", address: base + 0x2f0, size: 0x20, flags: code }]),
    problem: "has something between .text and the section before it",
  },
])("startOf() refuses a file that $problem", ({ elf, problem }) => {
  expect(() => startOf(elf)).toThrow(`the executable ${problem}: look what`);
});
