// Debian's packages. Elsewhere, or without root, set-up only says which programs are missing.
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { run } from "./run.mjs";

/** @typedef {import("../setup.mjs").Step} Step */

/** Package: a program of it, by which other distributions are judged. */
export const hostPackages = {
  iptables: "iptables",
  nftables: "nft",
  iproute2: "ip",
  "util-linux": "nsenter",
  haproxy: "haproxy",
  "busybox-static": "busybox",
  conntrack: "conntrack",
  jq: "jq",
  procps: "ps",
  "ca-certificates": "update-ca-certificates",
  curl: "curl",
  openssl: "openssl",
  strace: "strace",
  binutils: "strip",
};

/** What the tests need besides: a compiler (for a slow name service), container runtimes, a cluster. */
export const runtimePackages = {
  gcc: "gcc",
  "libc6-dev": "gcc",
  podman: "podman",
  containerd: "containerd",
  runc: "runc",
  conmon: "conmon",
  crun: "crun",
  "etcd-server": "etcd",
  "containernetworking-plugins": "/usr/lib/cni/bridge",
};

/** @param {string} program */
const onPath = (program) => {
  const dirs = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  const files = program.startsWith("/") ? [program] : dirs.map((dir) => join(dir, program));
  return files.some((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
};

/** @param {string[]} names */
const notInstalled = (names) => {
  const format = ["-W", `-f=\${Package} \${db:Status-Status}\n`];
  // exits 1 when it does not know one of the names, and still lists the others
  const asked = spawnSync("dpkg-query", [...format, ...names], { encoding: "utf8" });
  const lines = new Set(asked.stdout.split("\n"));
  return names.filter((name) => !lines.has(`${name} installed`));
};

/** @param {string[]} names */
export const aptInstall = (names) => {
  const root = process.getuid?.() === 0;
  if (!(root && onPath("apt-get"))) {
    const why = root ? "this is not a Debian machine" : "only root can install packages";
    throw new Error(`${why}; install by hand: ${names.join(" ")}`);
  }
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const options = ["-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"];
  run(["apt-get", ...options, "update"], env);
  // never at the price of a package that is there, such as another vendor's containerd
  run(
    ["apt-get", ...options, "install", "-y", "--no-install-recommends", "--no-remove", ...names],
    env,
  );
};

/**
 * @param {Record<string, string>} packages
 * @returns {Step}
 */
export const aptStep = (packages) => ({
  name: "apt packages",
  missing: () =>
    onPath("dpkg-query")
      ? notInstalled(Object.keys(packages))
      : Object.values(packages).filter((program) => !onPath(program)),
  install: aptInstall,
  advice: "as root on Debian 12: apt-get update, then apt-get install the packages named above",
});
