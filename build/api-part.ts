// The API client as a part of its own beside the snapshot: a pod whose annotations the runtime tells pays nothing for it,
// and one that is asked for finds it compiled. In the bundle, for development, it is a module like any other.
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { askingAdd } from "./asking-add.ts";
import { bundling, minified } from "./bundle.ts";
import { partName } from "./part-loader.ts";

/** The module that the program imports of it, when it is needed. */
const entry = "src/kube/reader.ts";

/** Modules of which there must be one only: errors that are thrown there and caught here. */
const shared = ["src/fault.ts", "src/kube/unanswered.ts"];

/** The program's side: a module that imports the API client gets it from the executable. */
export const partFromExecutable: Plugin = {
  name: "part-from-executable",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /\/reader\.ts$/ }, ({ resolveDir, path }) =>
      join(resolveDir, path) === resolve(entry) ? { path: entry, namespace: partName } : undefined,
    );
    onLoad({ filter: /.*/, namespace: partName }, () => ({
      contents: programSide(),
      resolveDir: resolve("."),
    }));
  },
};

function programSide(): string {
  const imports = shared.map((file, i) => `import * as shared${i} from "./${file}";`);
  const given = shared.map((file, i) => `"${file}": shared${i}`);
  return `${imports.join("\n")}
    import { loadPart } from "./build/part-loader.ts";
    export const { openReader } = loadPart("${partName}", { ${given.join(", ")} });`;
}

/** The part's side. */
const sharedFromProgram: Plugin = {
  name: "shared-from-program",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^\./ }, ({ resolveDir, path }) => {
      const name = shared.find((file) => resolve(file) === join(resolveDir, path));
      return name === undefined ? undefined : { path: name, external: true };
    });
  },
};

/** The part's text, and a text that in its place makes its code (build/part-cache.ts). With a map of the first in `work`. */
export type PartTexts = { readonly part: Buffer; readonly compiler: Buffer };

/** Bundles both in `work`, in which the part's text stays, for the compiler to find. */
export async function bundlePart(work: string): Promise<PartTexts> {
  const bundled = async (from: string, file: string) => {
    await build({
      ...bundling,
      ...minified,
      entryPoints: [from],
      plugins: [sharedFromProgram],
      outfile: join(work, file),
      banner: { js: "(function (module, exports, require) {" },
      footer: { js: "})" },
    });
    return await readFile(join(work, file));
  };
  return {
    part: await bundled(entry, `${partName}.cjs`),
    compiler: await bundled("build/part-cache.ts", "compiler.cjs"),
  };
}

/** Runs an executable with the compiler in the part's place, in `work`. Gives the code. */
export async function compilePart(executable: string, work: string): Promise<Buffer> {
  const { exitCode, stdout, stderr } = await askingAdd(executable, work);
  if (exitCode !== 0) throw new Error(`the API client was not compiled: ${stdout}${stderr}`);
  return await readFile(join(work, `${partName}.cache`));
}
