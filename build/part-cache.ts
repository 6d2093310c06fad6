// In the place of the API client, in an executable that is only made for this: compiles the API client as far as a question
// comes to a server that is not there, and leaves the code in the current directory. Code fits only the snapshot that it
// was made from, so it is made by the executable itself (build/api-part.ts).
import { readFileSync, writeFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import { Script } from "node:vm";
import * as z from "zod";
import * as error from "../src/cni/error.ts";
import type { openReader as open } from "../src/kube/reader.ts";
import * as unanswered from "../src/kube/unanswered.ts";
import { partFile, partName, runPart } from "./part-loader.ts";

const authority = Buffer.from(rootCertificates[0] ?? "").toString("base64");

/** In the form in which Linkerd's installer writes it, so that what reads it is compiled. Nobody listens at that port. */
const kubeconfig = `# Kubeconfig file for linkerd CNI plugin.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://127.0.0.1:1
    certificate-authority-data: ${authority}
users:
- name: linkerd-cni
  user:
    token: none
contexts:
- name: linkerd-cni-context
  context:
    cluster: local
    user: linkerd-cni
current-context: linkerd-cni-context
`;

const isFunction = (value: unknown) => typeof value === "function";
const clientSchema = z.object({ openReader: z.custom<typeof open>(isFunction) });

/** What the program asks for; it gets no answer. */
export async function openReader(): Promise<never> {
  const text = readFileSync(`${partName}.cjs`, "utf8");
  const script = new Script(text, { filename: partFile(partName) });
  const shared = { "src/cni/error.ts": error, "src/kube/unanswered.ts": unanswered };
  const client = clientSchema.parse(runPart(script, shared));
  writeFileSync("kubeconfig", kubeconfig);
  const reader = await client.openReader({
    kubeconfig: "kubeconfig",
    clock: { monotonicMs: () => 0, epochMs: () => 0, sleep: async () => undefined },
    remainingMs: () => 0,
  });
  const outcome = await reader.pod("none", "none").catch((thrown: unknown) => thrown);
  if (!(outcome instanceof unanswered.UnansweredError)) throw outcome;
  const code = script.createCachedData();
  // Under another name: of the same it would find the script that it has already.
  const { cachedDataRejected } = new Script(text, { filename: "check", cachedData: code });
  if (cachedDataRejected !== false) throw new Error("V8 does not take the code that it made");
  writeFileSync(`${partName}.cache`, code);
  process.exit(0);
}
