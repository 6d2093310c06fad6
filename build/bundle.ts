// Bundles the plugin into one file that any Node of the pinned line runs: dist/sluice.cjs, the form for development.
// The same text always comes of the same sources: no time, no path of this machine is in it.
import { chmod, mkdir, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { leftOut } from "./left-out.ts";

/** Where the bundle goes, relative to the project. */
export const bundleFile = "dist/sluice.cjs";

/** Of package.json, only the version is the plugin's business: not its scripts. */
const versionOnly: Plugin = {
  name: "version-only",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/package\.json$/ }, async ({ path }) => {
      if (path !== resolve("package.json")) return undefined;
      const { version } = JSON.parse(await readFile(path, "utf8"));
      return { contents: JSON.stringify({ version }), loader: "json" };
    });
  },
};

const common: BuildOptions = {
  entryPoints: ["src/plugin.ts"],
  bundle: true,
  platform: "node",
  target: "node24",
  format: "cjs",
  plugins: [leftOut, versionOnly],
  legalComments: "none",
  logLevel: "warning",
};

/** Makes the bundle. */
export async function bundle(): Promise<void> {
  await mkdir("dist", { recursive: true });
  await build({ ...common, outfile: bundleFile, banner: { js: "#!/usr/bin/env node" } });
  await chmod(bundleFile, 0o755);
}

/**
 * Makes the same for the executable, where each byte is read at each start: without blanks and names, which saves 1 ms.
 * Beside it goes a map, by which positions in stack traces are found in the sources. `banner` comes first.
 */
export async function bundleForSnapshot(outfile: string, banner: string): Promise<void> {
  await build({
    ...common,
    outfile,
    banner: { js: banner },
    minify: true,
    sourcemap: "external",
    sourcesContent: false,
  });
}
