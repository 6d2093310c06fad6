// In the place of the API client, in an executable that is only made for this: compiles the API client as far as a question
// comes to a server that is not there, and leaves the code in the current directory. Code fits only the snapshot that it
// was made from, so it is made by the executable itself (build/api-part.ts).
import { readFileSync, writeFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import { Script } from "node:vm";
import * as z from "zod";
import * as fault from "../src/fault.ts";
import type { openReader as open } from "../src/kube/reader.ts";
import * as unanswered from "../src/kube/unanswered.ts";
import { kubeconfigFile, kubeconfigOf } from "./kubeconfig.ts";
import { partFile, partName, runPart } from "./part-loader.ts";

const authority = Buffer.from(rootCertificates[0] ?? "").toString("base64");

const isFunction = (value: unknown) => typeof value === "function";
const clientSchema = z.object({ openReader: z.custom<typeof open>(isFunction) });

/** What the program asks for; it gets no answer. */
export async function openReader(): Promise<never> {
  const text = readFileSync(`${partName}.cjs`, "utf8");
  const script = new Script(text, { filename: partFile(partName) });
  const shared = { "src/fault.ts": fault, "src/kube/unanswered.ts": unanswered };
  const client = clientSchema.parse(runPart(script, shared));
  writeFileSync(kubeconfigFile, kubeconfigOf(authority, ["token: none"]));
  const reader = await client.openReader({
    kubeconfig: kubeconfigFile,
    clock: { monotonicMs: () => 0, epochMs: () => 0, sleep: async () => undefined },
    remainingMs: () => 0,
  });
  const outcome = await reader.pod("none", "none").catch((thrown: unknown) => thrown);
  if (!(outcome instanceof unanswered.UnansweredError)) throw outcome;
  writeFileSync(`${partName}.cache`, script.createCachedData());
  process.exit(0);
}
