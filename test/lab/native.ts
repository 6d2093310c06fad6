// What `nft -j list ruleset` of 1.0.6 printed of a netns: recorded, one netns a file.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type NativeView, parseNative } from "../../src/netfilter/native/view.ts";

/** The recorded text. */
export function recorded(name: string): string {
  return readFileSync(join(import.meta.dirname, `../fixture/nft/${name}.json`), "utf8");
}

/** The same, read. */
export function viewOf(name: string): NativeView {
  return parseNative(recorded(name));
}
