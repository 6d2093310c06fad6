// What the tests of the API client share: an API server of their own, and a directory for kubeconfigs.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base } from "vitest";
import type { KubeSettings } from "../../src/kube/client.ts";
import { objectsFor } from "../lab/api-objects.ts";
import { type ApiStub, startApi } from "../lab/api-stub.ts";
import { makeAuthority } from "../lab/certificates.ts";

/** Files in a directory that goes with the test. */
export type Files = {
  readonly dir: string;
  /** Writes one, as text or as JSON, and gives its path. */
  readonly write: (name: string, content: string | object) => string;
};

/** A test that is given an API server with all that is asked for a pod, and files, if it asks for them. */
export const test = base
  .extend("authority", { scope: "file" }, makeAuthority)
  .extend("api", async ({ authority }, { onCleanup }): Promise<ApiStub> => {
    const api = await startApi({ authority });
    api.objects = objectsFor();
    onCleanup(api.close);
    return api;
  })
  .extend("files", ({ task: _ }, { onCleanup }): Files => {
    const dir = mkdtempSync(join(tmpdir(), "slc-kube-"));
    onCleanup(() => rmSync(dir, { recursive: true }));
    const write: Files["write"] = (name, content) => {
      const file = join(dir, name);
      writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
      return file;
    };
    return { dir, write };
  });

/** Settings with so much time on a clock that only sleeping moves, and the sleeps so far. */
export function settingsFor(kubeconfig: string, totalMs: number) {
  const sleeps: number[] = [];
  const slept = () => sleeps.reduce((sum, ms) => sum + ms, 0);
  const settings: KubeSettings = {
    kubeconfig,
    clock: {
      monotonicMs: slept,
      epochMs: slept,
      sleep: (ms) => {
        sleeps.push(ms);
        return Promise.resolve();
      },
    },
    remainingMs: () => Math.max(0, totalMs - slept()),
  };
  return { settings, sleeps };
}
