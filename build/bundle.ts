// Bundles the plugin into one file that any Node of the pinned line runs: dist/sluice.cjs, the form for development.
// The same text always comes of the same sources: no time, no path of this machine is in it.
import { chmod, mkdir } from "node:fs/promises";
import { type BuildOptions, build } from "esbuild";
import { leftOut } from "./left-out.ts";

/** Where the bundle goes, relative to the project. */
export const bundleFile = "dist/sluice.cjs";

const common: BuildOptions = {
  entryPoints: ["src/plugin.ts"],
  bundle: true,
  platform: "node",
  target: "node24",
  format: "cjs",
  plugins: [leftOut],
  legalComments: "none",
  logLevel: "warning",
};

/** Makes the bundle. */
export async function bundle(): Promise<void> {
  await mkdir("dist", { recursive: true });
  await build({ ...common, outfile: bundleFile, banner: { js: "#!/usr/bin/env node" } });
  await chmod(bundleFile, 0o755);
}

/** Makes the same for the executable, where each byte is read at each start. Functions keep their names, for stack traces. */
export async function bundleForSnapshot(outfile: string): Promise<void> {
  await build({ ...common, outfile, minifySyntax: true, minifyWhitespace: true });
}
