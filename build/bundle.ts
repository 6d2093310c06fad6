// Bundles the plugin into one file that any Node of the pinned line runs: dist/sluice.cjs, the form for development.
// The same text always comes of the same sources: no time, no path of this machine is in it.
import { chmod, mkdir, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { leftOut } from "./left-out.ts";
import { plainBuiltins } from "./plain-builtins.ts";

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

/** How all that is bundled is: for the pinned Node's line. */
export const bundling: BuildOptions = {
  bundle: true,
  platform: "node",
  target: "node24",
  format: "cjs",
  legalComments: "none",
  logLevel: "warning",
};

const program: BuildOptions = {
  ...bundling,
  entryPoints: ["src/plugin.ts"],
  plugins: [leftOut, plainBuiltins, versionOnly],
};

/** Makes the bundle. */
export async function bundle(): Promise<void> {
  await mkdir("dist", { recursive: true });
  await build({ ...program, outfile: bundleFile, banner: { js: "#!/usr/bin/env node" } });
  await chmod(bundleFile, 0o755);
}

/** Without blanks and names, since each byte is read at each start; by the map, positions are found in the sources. */
export const minified: BuildOptions = {
  minify: true,
  sourcemap: "external",
  sourcesContent: false,
};

/**
 * Makes the same for the executable, minified, with more of the bundler's plug-ins. `banner` comes first.
 */
export async function bundleForSnapshot(
  outfile: string,
  { banner, plugins }: { banner: string; plugins: readonly Plugin[] },
): Promise<void> {
  await build({
    ...program,
    ...minified,
    plugins: [...plugins, ...(program.plugins ?? [])],
    outfile,
    banner: { js: banner },
  });
}
