// The last step of the build: starts what was built, since nothing that was done to it (sea-blob.ts, entry.ts, snapshot.ts) is
// known to work before.
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { errorCode } from "../src/cni/error.ts";
import { renderVersions } from "../src/cni/version.ts";
import { askingAdd } from "./asking-add.ts";
import { type Carried, faultsIn, telling } from "./code-report.ts";
import { kubeconfigFile, kubeconfigOf, server } from "./kubeconfig.ts";
import { withOption } from "./sea-blob.ts";

/**
 * Starts the finished executable, in `work`: for VERSION, and for an ADD that loads the API client. Variables that make Node
 * talk are in its environment, and must not come through to it.
 * @throws Error when an answer is not the expected one.
 */
export async function proveAnswers(executable: string, work: string): Promise<void> {
  const env = { CNI_COMMAND: "VERSION", ...telling.env };
  const version = await execa(resolve(executable), { env, extendEnv: false, reject: false });
  if (version.stdout !== renderVersions() || version.stderr !== "") {
    throw new Error(`the executable's answer to VERSION is ${version.stdout}${version.stderr}`);
  }
  const printed = await refusedAdd(executable, work);
  if (/code cache/i.test(printed)) throw new Error(`variables of Node's come through:\n${printed}`);
}

/**
 * Starts an executable that has the blob of the finished one but for withTelling(), and with nothing before Node: asks it what
 * became of the code that it carries.
 * @throws Error when not all of it was taken.
 */
export async function proveCode(executable: string, work: string, carried: Carried): Promise<void> {
  const faults = faultsIn(await refusedAdd(executable, work), carried);
  if (faults.length > 0) {
    throw new Error(`the code in the executable is not as it should be:\n${faults.join("\n")}`);
  }
}

/** The blob of an executable that tells what becomes of its code. V8 takes the same code with this option and without. */
export function withTelling(blob: Buffer): Buffer {
  return withOption(blob, telling.option);
}

/** Neither a certificate nor a key, which is found when the connection is begun, and for good. */
const none = Buffer.from("none").toString("base64");
const user = [`client-certificate-data: ${none}`, `client-key-data: ${none}`];

// How the answer begins: behind it stands what OpenSSL has against them.
const refusal = `{"cniVersion":"1.1.0","code":${errorCode.podUnreadable},"msg":"no trusted connection to the API server: GET ${server}/api/v1/namespaces/build/pods/build: error:`;

// An ADD that comes as far as a connection to the API. Gives all that was printed.
async function refusedAdd(executable: string, work: string): Promise<string> {
  await writeFile(join(work, kubeconfigFile), kubeconfigOf(none, user));
  const { exitCode, stdout, stderr } = await askingAdd(executable, work, telling.env);
  if (exitCode !== 1 || !stdout.includes(refusal)) {
    throw new Error(`the executable's answer to an ADD that asks the API is ${stdout}${stderr}`);
  }
  // What V8 tells may follow the answer, which ends no line.
  return `${stdout.replace("}[", "}\n[")}\n${stderr}`;
}
