// What a start of the executable tells of the code that it carries: whether V8 took it, or threw it away and compiled the
// sources, which costs an ADD more than the question itself and is seen nowhere else. Pure: text in, faults out.

/** The code that is carried: Node's own modules that have some, and the size of the API client's. */
export type Carried = { readonly modules: readonly string[]; readonly partBytes: number };

/** By these Node and V8 are made to tell it: a variable of Node's (node_builtins.cc), an option of V8's (code-serializer.cc). */
export const telling = {
  env: { NODE_DEBUG_NATIVE: "CODE_CACHE" },
  option: "--profile-deserialization",
} as const;

/**
 * All that is not as it should be in what a start told; empty where each piece of code was taken, and nothing of Node's was
 * compiled without. What nothing is said of is a fault: it may be that this version says it in other words.
 */
export function faultsIn(report: string, { modules, partBytes }: Carried): string[] {
  const taken = wordsIn(report, /^Code cache of (\S+) \(\w+\) is accepted$/gm);
  const refused = wordsIn(report, /^Code cache of (\S+) \(\w+\) is rejected$/gm);
  const without = wordsIn(report, /^Compiling (\S+) without code cache/gm);
  const checks = wordsIn(report, /^\[Cached code failed check: (.+)\]$/gm);
  const loaded = wordsIn(report, /^\[Deserializing from (\d+) bytes took /gm);
  const unsaid = modules.filter((name) => !taken.includes(name) && !refused.includes(name));
  return [
    ...refused.map((name) => `V8 refused the code of Node's ${name}`),
    ...without.map((name) => `Node's ${name} was compiled from source`),
    ...unsaid.map((name) => `nothing is told of the code of Node's ${name}`),
    ...checks.map((check) => `V8 refused code: ${check}`),
    ...(loaded.includes(String(partBytes)) ? [] : ["V8 did not take the code of the API client"]),
  ];
}

function wordsIn(report: string, line: RegExp): string[] {
  return [...report.matchAll(line)].map(([, word]) => word ?? "");
}
