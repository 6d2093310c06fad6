// The npm packages, and with them the Node that everything else runs on.
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { checkout } from "./paths.mjs";
import { run } from "./run.mjs";

/** @typedef {import("../setup.mjs").Step} Step */
/** @typedef {Record<string, {version?: string, integrity?: string, optional?: boolean}>} Packages */

const neededNode = 24;

/**
 * @param {string} file
 * @returns {Packages}
 */
const readPackages = (file) => {
  const path = join(checkout, file);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).packages : {};
};

// npm writes the second file last of all, so a half-done install has none.
const differing = () => {
  const { "": _root, ...locked } = readPackages("package-lock.json");
  const installed = readPackages("node_modules/.package-lock.json");
  /** @param {string} path */
  const same = (path) =>
    installed[path]?.version === locked[path]?.version &&
    installed[path]?.integrity === locked[path]?.integrity;
  const wanted = Object.keys(locked).filter((path) => !locked[path]?.optional || installed[path]);
  return [...new Set([...wanted, ...Object.keys(installed)])].filter((path) => !same(path));
};

const lacksNode = () =>
  Number.parseInt(process.versions.node, 10) < neededNode &&
  !existsSync(join(checkout, "node_modules/.bin/node"));

// `npm test` puts node_modules/.bin first on PATH: a Node that npm is about to replace.
const machinePath = () =>
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((dir) => !dir.includes("node_modules"))
    .join(delimiter);

/** @type {Step} */
export const npmStep = {
  name: "npm packages",
  missing: () => {
    const paths = differing().map((path) => path.replace(/^node_modules\//, ""));
    return lacksNode() ? [...paths, `Node ${neededNode}`] : paths;
  },
  install: () => {
    const options = ["--prefix", checkout, "--include=dev", "--include=optional"];
    const quiet = /** @type {const} */ (["--no-audit", "--no-fund", "--loglevel=error"]);
    run(["npm", "ci", ...options, ...quiet], { PATH: machinePath() });
  },
  advice: "npm ci, in the checkout",
};
