// Node's own modules, taken as they are. For a default import of one, the bundler makes a copy of the module with a getter
// for each name of it, in case it has no default export: 840 functions, all of which would be in the startup snapshot.
import { readFile } from "node:fs/promises";
import type { Plugin } from "esbuild";

const defaultImport = /^import (\w+) from (['"])(node:[\w/]+)\2;?$/gm;

/** The bundler's plug-in for it, for libraries: our own sources import by names only. */
export const plainBuiltins: Plugin = {
  name: "plain-builtins",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/node_modules\/.*\.m?js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replaceAll(defaultImport, 'const $1 = require("$3");');
      return contents === text ? undefined : { contents };
    });
  },
};
