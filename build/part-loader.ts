// In the executable: loads the API client, which is beside the snapshot and not in it (build/api-part.ts).

/** The name of the API client's files, without their endings. */
export const partName = "kube";

/** What a part shares with the program, by the names under which it asks for it: one class of an error, not two. */
export type Shared = Readonly<Record<string, unknown>>;

/**
 * Loads a part of the executable, compiled as it is there. `name` is that of its files, without their endings. Code that V8
 * refuses is compiled from the text, which is slower and no worse: that it is taken is proven by the build (proof.ts).
 */
export function loadPart(name: string, shared: Shared): unknown {
  const { getRawAsset } = process.getBuiltinModule("node:sea");
  const { Script } = process.getBuiltinModule("node:vm");
  const asset = (kind: string) => Buffer.from(getRawAsset(`${name}.${kind}`));
  const options = { filename: partFile(name), cachedData: asset("cache") };
  return runPart(new Script(asset("cjs").toString(), options), shared);
}

/** Under which name a part stands in stack traces: the same wherever it was built. */
export function partFile(name: string): string {
  return `/proc/self/cwd/${name}.cjs`;
}

/** Gives what a part exports. Its script's value is a function of what Node's module loader gives a module. */
export function runPart(script: { runInThisContext: () => unknown }, shared: Shared): unknown {
  const module: { exports: unknown } = { exports: {} };
  const wrapper = script.runInThisContext();
  if (typeof wrapper !== "function") throw new Error("this part of the executable is none");
  wrapper(module, module.exports, (id: string) => shared[id] ?? process.getBuiltinModule(id));
  return module.exports;
}
