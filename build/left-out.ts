// Parts of the libraries that the plugin never comes to, left out of its bundle: they cannot be told from the rest by their
// exports, and what is loaded and not used is paid for at each start (3 ms together).
import { join } from "node:path";
import type { Plugin } from "esbuild";

/** File of a package, and what stands in its place. */
const standIns: Readonly<Record<string, string>> = {
  // All children are started synchronously (src/netns/exec.ts); the other half of execa is for streams.
  "execa/lib/methods/main-async.js":
    'export const execaCoreAsync = () => { throw new Error("only execaSync is in this bundle"); };',
  // Messages between Node processes.
  "execa/lib/ipc/methods.js":
    "export const getIpcExport = () => ({}); export const addIpcMethods = () => undefined;",
  // Transports in threads, for which pino looks up who called it; and files that pino writes: src/log.ts writes itself.
  "pino/lib/caller.js": "module.exports = () => [];",
  "pino/lib/transport.js": `module.exports = () => { throw new Error("no transports are in this bundle"); };`,
  "sonic-boom/index.js": `module.exports = class { constructor() { throw new Error("pino writes no files here"); } };`,
};

/** The bundler's plug-in for it. A file that is no longer there stops the build: look what became of it. */
export const leftOut: Plugin = {
  name: "left-out",
  setup: ({ onLoad, onEnd }) => {
    const met = new Set<string>();
    for (const [file, contents] of Object.entries(standIns)) {
      const filter = new RegExp(`${join("node_modules", file).replaceAll(/[/.]/g, "\\$&")}$`);
      onLoad({ filter }, () => {
        met.add(file);
        return { contents };
      });
    }
    onEnd(() => {
      const errors = Object.keys(standIns).filter((file) => !met.has(file));
      return { errors: errors.map((file) => ({ text: `nothing was left out of ${file}` })) };
    });
  },
};
