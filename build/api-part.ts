// The API client as a part of its own beside the snapshot: a pod whose annotations the runtime tells pays nothing for it,
// and one that is asked for finds it compiled. In the bundle, for development, it is a module like any other.
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { execa } from "execa";
import { bundling, minified } from "./bundle.ts";
import { partName } from "./part-loader.ts";

/** The module that the program imports of it, when it is needed. */
const entry = "src/kube/reader.ts";

/** Modules of which there must be one only: errors that are thrown there and caught here. */
const shared = ["src/cni/error.ts", "src/kube/unanswered.ts"];

/** The program's side: whoever imports the API client gets it from the executable. */
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
  const conf = {
    cniVersion: "1.1.0",
    name: "build",
    type: "sluice",
    kubernetes: { kubeconfig: "none" },
    linkerd: { "incoming-proxy-port": 4143, "outgoing-proxy-port": 4140, "proxy-uid": 2102 },
    sluice: { "pod-source": "api" },
    prevResult: { cniVersion: "1.1.0", ips: [{ address: "192.0.2.2/24" }] },
  };
  await execa(resolve(executable), {
    cwd: work,
    env: {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: "build",
      CNI_NETNS: "/proc/self/ns/net",
      CNI_NETNS_OVERRIDE: "1",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/",
      CNI_ARGS: "K8S_POD_NAMESPACE=build;K8S_POD_NAME=build",
    },
    extendEnv: false,
    input: JSON.stringify(conf),
  });
  return await readFile(join(work, `${partName}.cache`));
}
