// Container images made of what the machine has: a docker-archive of a directory, as `ctr images import` takes it.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { execaSync } from "execa";

export type Image = {
  /** `name:tag` */
  readonly name: string;
  /** The directory that becomes its only layer. */
  readonly root: string;
  readonly command: readonly string[];
};

/** Writes the image as one file, in a directory that can be written to. */
export function writeImage(file: string, image: Image): void {
  const work = mkdtempSync(join(dirname(file), "image-"));
  try {
    const layer = join(work, "layer.tar");
    execaSync("tar", ["--create", "--file", layer, "--directory", image.root, "."]);
    const config = JSON.stringify({
      // Go's name for it
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: { Cmd: image.command, Env: ["PATH=/bin:/usr/sbin"] },
      rootfs: { type: "layers", diff_ids: [`sha256:${sha256(readFileSync(layer))}`] },
      history: [{}],
    });
    const configName = `${sha256(config)}.json`;
    const manifest = [{ Config: configName, RepoTags: [image.name], Layers: ["layer.tar"] }];
    writeFileSync(join(work, configName), config);
    writeFileSync(join(work, "manifest.json"), JSON.stringify(manifest));
    const members = ["manifest.json", configName, "layer.tar"];
    execaSync("tar", ["--create", "--file", file, "--directory", work, ...members]);
  } finally {
    rmSync(work, { recursive: true });
  }
}

const applets = "sh sleep cat nc ip id httpd wget true kill".split(" ");

/** Lays out a root with busybox in it. */
export function layOutBusybox(root: string): string {
  for (const name of ["bin", "dev", "etc", "proc", "run", "sys", "tmp"]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  copyFileSync("/bin/busybox", join(root, "bin/busybox"));
  for (const applet of applets) symlinkSync("busybox", join(root, "bin", applet));
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/:/bin/sh\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\n");
  return root;
}

/** Copies a program of the machine into a root, with the libraries that it is linked to. */
export function copyProgram(program: string, root: string): void {
  const linked = execaSync("ldd", [program]).stdout;
  const libraries = [...linked.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path ?? "");
  for (const file of [program, ...libraries]) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    copyFileSync(file, join(root, file));
  }
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}
