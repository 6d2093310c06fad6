// Bundles the plugin into one file that Node runs: dist/sluice.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const outfile = "dist/sluice";

// A file without extension is of its folder's kind; the project's is "module", and a bundle for all Nodes is not.
mkdirSync("dist", { recursive: true });
writeFileSync("dist/package.json", '{"type":"commonjs"}\n');

await build({
  entryPoints: ["src/plugin.ts"],
  outfile,
  bundle: true,
  platform: "node",
  target: "node24",
  format: "cjs",
  banner: { js: "#!/usr/bin/env node" },
  legalComments: "none",
  logLevel: "warning",
});
chmodSync(outfile, 0o755);
