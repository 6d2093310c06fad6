// Finds the source text of one member of a JSON object, so that a value can be handed on byte for byte:
// JSON.parse and JSON.stringify lose big numbers and the order of keys that look like numbers.

const blank = /[ \t\n\r]*/y;
const scalar = /[^,\]}\s]+/y;

/** One member of an object: its key as it is meant, and the texts of key and value as they are written. */
export type RawMember = { readonly key: string; readonly keyText: string; readonly text: string };

/** All members of the object in `json`, in order. `json` must be valid JSON with an object at the top. */
export function rawMembers(json: string): RawMember[] {
  const members: RawMember[] = [];
  let at = skip(blank, json, json.indexOf("{") + 1);
  while (json[at] === '"') {
    const keyText = json.slice(at, stringEnd(json, at));
    const start = skip(blank, json, skip(blank, json, at + keyText.length) + 1);
    const end = valueEnd(json, start);
    members.push({ key: String(JSON.parse(keyText)), keyText, text: json.slice(start, end) });
    at = skip(blank, json, end);
    if (json[at] === ",") at = skip(blank, json, at + 1);
  }
  return members;
}

/** The text of the last member called `key` (the one that JSON.parse takes), or undefined. */
export function rawMember(json: string, key: string): string | undefined {
  return rawMembers(json).findLast((member) => member.key === key)?.text;
}

function valueEnd(json: string, start: number): number {
  switch (json[start]) {
    case '"':
      return stringEnd(json, start);
    case "{":
    case "[":
      return nestedEnd(json, start);
    default:
      return skip(scalar, json, start);
  }
}

function nestedEnd(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    const char = json[at] ?? "";
    if (char === '"') at = stringEnd(json, at) - 1;
    else if ("{[".includes(char)) depth++;
    else if ("}]".includes(char)) depth--;
    if (depth === 0) return at + 1;
  }
  return json.length;
}

// By search, not by one pattern: a pattern that steps over a megabyte of string overflows its stack.
function stringEnd(json: string, start: number): number {
  let at = json.indexOf('"', start + 1);
  while (isEscaped(json, at)) at = json.indexOf('"', at + 1);
  return at + 1;
}

function isEscaped(json: string, at: number): boolean {
  let backslashes = 0;
  while (json[at - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 1;
}

function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}
