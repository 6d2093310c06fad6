// Bundles the plugin into one file that any Node of the pinned line runs: dist/sluice.cjs, the form for development.
// The same text always comes of the same sources: no time, no path of this machine is in it.
import { chmod, mkdir } from "node:fs/promises";
import { build } from "esbuild";

/** Where the bundle goes, relative to the project. */
export const bundleFile = "dist/sluice.cjs";

/** Makes the bundle. */
export async function bundle(): Promise<void> {
  await mkdir("dist", { recursive: true });
  await build({
    entryPoints: ["src/plugin.ts"],
    outfile: bundleFile,
    bundle: true,
    platform: "node",
    target: "node24",
    format: "cjs",
    banner: { js: "#!/usr/bin/env node" },
    legalComments: "none",
    logLevel: "warning",
  });
  await chmod(bundleFile, 0o755);
}
