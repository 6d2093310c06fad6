// The API server that plugins ask in the benchmark, in a process of its own: what it costs is not counted as theirs.
// argv: where to write the kubeconfig. stdout: one line once it listens. It ends with its stdin.
import { writeFileSync } from "node:fs";
import { paths, podObject } from "../lab/api-objects.ts";
import { startApi } from "../lab/api-stub.ts";
import { linkerdKubeconfig } from "../lab/kubeconfig.ts";
import { podAnnotations } from "./conf.ts";

const [, , file = ""] = process.argv;
const api = await startApi();
api.objects = {
  [paths.pod]: podObject({ annotations: podAnnotations }),
  [paths.namespace]: {
    kind: "Namespace",
    apiVersion: "v1",
    metadata: { name: "emoji", annotations: {} },
  },
};
writeFileSync(file, linkerdKubeconfig(api), { mode: 0o600 });
console.log("listening");
process.stdin.resume().on("end", () => process.exit(0));
