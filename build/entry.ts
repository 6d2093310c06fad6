// Puts before Node's first instruction what keeps the runtime's environment from Node (entry/*.s says what). Node acts on some
// variables of its own before any JavaScript runs, so the program itself comes too late for that.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { beginningWith, type Start, startOf } from "./elf.ts";

/** The assembler's text for this kind of machine. */
const source = `build/entry/${process.arch}.s`;

/** Changes the executable `file` in its place; `work` is for what comes in between. */
export async function filterEnvironment(file: string, work: string): Promise<void> {
  const elf = await readFile(file);
  const start = startOf(elf);
  await writeFile(file, beginningWith(elf, start.room, await assemble(start, work)));
}

async function assemble({ entry, room }: Start, work: string): Promise<Buffer> {
  const object = join(work, "entry.o");
  const linked = join(work, "entry.elf");
  const code = join(work, "entry.bin");
  await execa("as", [source, "-o", object]);
  const addresses = [`-Ttext=0x${room.address.toString(16)}`, `--defsym=node_entry=${entry}`];
  await execa("ld", [...addresses, "--entry=begin", "-o", linked, object]);
  await execa("objcopy", ["--output-target=binary", "--only-section=.text", linked, code]);
  return await readFile(code);
}
