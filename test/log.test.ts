// What is said must hold no secret, whoever wrote the text, and must not cost more time than the text is long.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openLog, redact } from "../src/log.ts";

const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.b-_9";

const hidden: [text: string, said: string][] = [
  [`x ${jwt} y`, "x [redacted] y"],
  [`"a":"${jwt}"`, '"a":"[redacted]"'],
  [`key=${jwt}, and ${jwt}`, "key=[redacted], and [redacted]"],
  [`a.b.${jwt}`, "a.b.[redacted]"],
  ["eyJ0.e30.", "[redacted]"],
  ["Bearer k8s-opaque/0+1==", "Bearer [redacted]"],
  ["authorization: bearer  abc def", "authorization: bearer  [redacted] def"],
  ['{"token":"abc","x":1}', '{"token":"[redacted]","x":1}'],
  [
    String.raw`"{\"password\" : \"abc\",\"n\":1}"`,
    String.raw`"{\"password\" : \"[redacted]\",\"n\":1}"`,
  ],
  ['"Client-Key-Data":"abc"', '"Client-Key-Data":"[redacted]"'],
  ['"k8s_auth_token":"a","token":"b"', '"k8s_auth_token":"[redacted]","token":"[redacted]"'],
];

test.each(hidden)("redact() hides the secret of %s", (text, said) => {
  expect(redact(text)).toBe(said);
  expect(redact(said)).toBe(said);
});

test.each([
  "eyJ",
  "eyJhbGciOiJSUzI1NiJ9",
  "eyJa.b",
  "the bearer: of news",
  '"token":""',
  '"tokens":"abc"',
  "token: abc",
])("redact() leaves %s", (text) => {
  expect(redact(text)).toBe(text);
});

// A pattern that looks at the same characters twice takes minutes for this much of these.
test.each([
  "eyJ",
  "eyJ.",
  "eyJa.eyJ",
  "-",
  ".",
  "Bearer ",
  "bearer",
  '"token"',
  '"token',
  '"token":"',
  '"token\\',
  '"token" :',
  '"password\\" : \\"',
  " ",
  "\t\n",
  "\\",
  '"',
  '"\\',
])("redact() ends on much of %j", (piece) => {
  const many = piece.repeat(200_000 / piece.length);
  for (const before of ["", "eyJ", "Bearer", '"token"', '"token":', '"token\\']) {
    for (const after of ["", "!", '"', "eyJa.b.c"]) {
      expect(redact(before + many + after).length).toBeGreaterThan(0);
    }
  }
});

test.each(["debug", "info", "warn", "error"] as const)(
  "openLog() gives a function for %s that can be passed on by itself",
  (level) => {
    const directory = mkdtempSync(join(tmpdir(), "slc-log-"));
    try {
      const file = join(directory, "log");
      const { [level]: say } = { ...openLog({ level: "debug", file }) };
      say({ pod: "web" }, "it is said");
      expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
        level,
        pod: "web",
        msg: "it is said",
      });
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);
