import { expect, test } from "vitest";
import { type Carried, faultsIn } from "../../build/code-report.ts";

const carried: Carried = { modules: ["sea", "internal/tls/wrap"], partBytes: 170_800 };

/** What a start prints whose code was all taken. */
const good = `snapshot contains 2 code cache
Compiling sea with code cache lazily
Code cache of sea (BufferNotOwned) is accepted
[Deserializing read-only space (128504 bytes) took 0.122 ms]
[Deserializing from 2936 bytes took 0.022 ms]
[Deserializing from 170800 bytes took 0.735 ms]
Compiling internal/tls/wrap with code cache lazily
Code cache of internal/tls/wrap (BufferNotOwned) is accepted
[Deserializing from 38920 bytes took 0.126 ms]
`;

const silent = [
  "nothing is told of the code of Node's sea",
  "nothing is told of the code of Node's internal/tls/wrap",
  "V8 did not take the code of the API client",
];

const cases: { what: string; report: string; faults: string[] }[] = [
  { what: "in code that was all taken", report: good, faults: [] },
  {
    what: "where V8 refused code of Node's",
    report: good.replace(
      "sea (BufferNotOwned) is accepted",
      "sea (BufferNotOwned) is rejected\n[Cached code failed check: flags mismatch]",
    ),
    faults: ["V8 refused the code of Node's sea", "V8 refused code: flags mismatch"],
  },
  {
    what: "where a module has no code",
    report: `${good}Compiling tls without code cache lazily\n`,
    faults: ["Node's tls was compiled from source"],
  },
  {
    what: "where nobody asked for a module",
    report: good.replaceAll("internal/tls/wrap", "internal/tls/common"),
    faults: ["nothing is told of the code of Node's internal/tls/wrap"],
  },
  {
    what: "where V8 refused the API client's",
    report: good.replace(/\[.* 170800 .*\]/, "[Cached code failed check: source mismatch]"),
    faults: ["V8 refused code: source mismatch", "V8 did not take the code of the API client"],
  },
  { what: "where Node tells nothing", report: "", faults: silent },
  { what: "where Node tells it in other words", report: good.replaceAll("o", "0"), faults: silent },
];

test.for(cases)("faultsIn() finds what is not as it should be $what", ({ report, faults }) => {
  expect(faultsIn(report, carried)).toEqual(faults);
});
