// What a box's runtime is given to work with: the plugins' programs, and a conf list that knows pods by annotations.
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { cniPluginsDir } from "../../../../build/setup/paths.mjs";
import { plugin } from "../../../lab/plugin.ts";
import type { Box } from "./box.ts";
import { byAnnotations, type Chain, type ChainOptions, chainOf } from "./chain.ts";
import { logFile } from "./traces.ts";

const reference = ["bridge", "host-local", "loopback", "portmap", "tuning"];

/** Why the reference plugins cannot be used; undefined when they can. */
export function pluginsLack(): string | undefined {
  const built = reference.every((name) => existsSync(join(cniPluginsDir, name)));
  return built ? undefined : "the reference plugins are not built (npm run setup)";
}

/** Makes the directory of plugins, ours among them, and gives its path; it is there already for a second runtime. */
export function layOutPlugins({ dir }: Box): string {
  const binDir = join(dir, "cni-bin");
  if (existsSync(binDir)) return binDir;
  mkdirSync(binDir);
  for (const name of reference) symlinkSync(join(cniPluginsDir, name), join(binDir, name));
  symlinkSync(plugin, join(binDir, "sluice"));
  return binDir;
}

/** A chain that knows pods by their annotations, and whose commands are all logged, where the tests look. */
export function annotatedChain(box: Box, options: ChainOptions): Chain {
  return chainOf({
    ...options,
    sluice: { ...byAnnotations, log_level: "debug", log_file: logFile(box), ...options.sluice },
  });
}
