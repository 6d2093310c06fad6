// Parts of the libraries that the plugin never comes to, left out of its bundle: they cannot be told from the rest by their
// exports, and what is loaded and not used is paid for at each start (3 ms together).
import type { Plugin } from "esbuild";

/** File of a package, or a module of Node's that only a package wants, and what stands in its place. */
const standIns: Readonly<Record<string, string>> = {
  // Of execa's ways to start a child, the plugin has one (src/netns/exec.ts): synchronously, with its arguments as a list.
  "execa/index.js": `import { createExeca } from "./lib/methods/create.js";
    export const execaSync = createExeca(() => ({ isSync: true }));`,
  "execa/lib/methods/main-async.js": `export const execaCoreAsync = ${refusing("execa")};`,
  "execa/lib/methods/template.js": `export const isTemplateString = () => false;
    export const parseTemplates = ${refusing("templates")};`,
  // Only Windows needs help to find a program, and only who asks for it looks in node_modules.
  "execa/lib/arguments/command-file.js": `export const parseCommandFile =
    (file, commandArguments, options) => ({ file, commandArguments: [...commandArguments], options });`,
  "npm-run-path/index.js": `export const npmRunPathEnv = ${refusing("preferLocal")};`,
  // The command as it would be typed, for messages that the plugin has its own of.
  "execa/lib/arguments/escape.js": `export const joinCommand = (file) => ({ command: file, escapedCommand: file });
    export const escapeLines = (lines) => lines;`,
  // Functions that change the output on its way.
  "execa/lib/transform/generator.js": "export const runGeneratorsSync = (chunks) => chunks;",
  // What is run is not printed, whatever NODE_DEBUG says: it would be for the runtime's eyes.
  "execa/lib/verbose/start.js": "export const logCommand = () => undefined;",
  "execa/lib/verbose/output.js": `export const shouldLogOutput = () => false;
    export const logLinesSync = () => undefined;`,
  "execa/lib/verbose/complete.js": "export const logResult = () => undefined;",
  // Messages between Node processes.
  "execa/lib/ipc/ipc-input.js": "export const validateIpcInputOption = () => undefined;",
  // pino's line goes to src/log.ts, which says itself what an error looks like, and what must not be in a line.
  "pino/lib/caller.js": "module.exports = () => [];",
  "pino/lib/multistream.js": `module.exports = ${refusing("multistream")};`,
  "pino/lib/redaction.js": `module.exports = ${refusing("redact")};`,
  "pino/lib/transport.js": `module.exports = ${refusing("transport")};`,
  "pino-std-serializers/index.js": `const asIs = (value) => value;
    module.exports = { err: asIs, mapHttpRequest: asIs, mapHttpResponse: asIs };`,
  "on-exit-leak-free/index.js": "module.exports = {};",
  "sonic-boom/index.js": `module.exports = function SonicBoom() { (${refusing("sonic-boom")})(); };`,
  worker_threads: "module.exports = { isMainThread: true };",
};

// Where we were wrong, it is said at once.
function refusing(what: string): string {
  return `() => { throw new Error("${what} is not in this bundle: see build/left-out.ts"); }`;
}

/** The bundler's plug-in for it. A file that is no longer there stops the build: look what became of it. */
export const leftOut: Plugin = {
  name: "left-out",
  setup: ({ onResolve, onLoad, onEnd }) => {
    const met = new Set<string>();
    onResolve({ filter: /^worker_threads$/ }, ({ path }) => ({ path, namespace: "left-out" }));
    for (const [name, contents] of Object.entries(standIns)) {
      onLoad(
        { filter: new RegExp(`(^|/node_modules/)${name.replaceAll(/[/.]/g, "\\$&")}$`) },
        () => {
          met.add(name);
          return { contents };
        },
      );
    }
    onEnd(() => {
      const errors = Object.keys(standIns).filter((name) => !met.has(name));
      return { errors: errors.map((name) => ({ text: `nothing was left out of ${name}` })) };
    });
  },
};
