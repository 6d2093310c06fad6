// README's section for users of linkerd-cni: each row of its table has tests, and its snippets are what is needed.

import { load } from "js-yaml";
import { expect, test } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/cni/conf.ts";
import { readSettings } from "../../src/conf/reader.ts";
import { configKeys, configPrefix } from "../../src/mesh/linkerd/names.ts";
import { objectsFor } from "../lab/api-objects.ts";
import { chartDefault } from "../level/runtime/drop-in/level.ts";
import { callKeys, rows } from "../level/runtime/drop-in/rows.ts";
import { blocksIn, section, tableIn } from "./readme.ts";
import { options } from "./schema.ts";

const text = section("Drop-in for linkerd-cni");
const [heading, ...table] = tableIn(text);
const keys = table.map(([key = ""]) => key.replaceAll("`", ""));

test("the table of parity has a row for each key that is tested, and no other", () => {
  expect(heading).toEqual(["key", "linkerd-cni", "Sluice"]);
  const tested = new Set([...rows.map(({ key }) => key), ...callKeys]);
  expect(keys.toSorted()).toEqual([...tested].toSorted());
});

test("the table of parity says something in each cell", () => {
  expect(table.filter((cells) => cells.length !== 3 || cells.some((cell) => cell === ""))).toEqual(
    [],
  );
});

test("the table of parity has every key of linkerd-cni and every annotation", () => {
  const linkerd = options().flatMap(({ path }) => /^`(linkerd\..+)`$/.exec(path)?.[1] ?? []);
  const annotations = configKeys.map((key) => configPrefix + key);
  const wanted = [...linkerd, "log_level", "kubernetes.kubeconfig", ...annotations];
  expect(wanted.filter((key) => !keys.includes(key))).toEqual([]);
});

test("the entry shown is linkerd-cni's rendered default, of our type, with the capability", () => {
  const [entry, ...more] = blocksIn(text, "json").map((code): JsonObject => JSON.parse(code));
  expect(more).toEqual([]);
  expect(entry).toEqual({
    type: "sluice",
    capabilities: { "io.kubernetes.cri.pod-annotations": true },
    log_level: "info",
    kubernetes: { kubeconfig: "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig" },
    linkerd: chartDefault,
  });
  expect(readSettings(entry ?? {}).unknownKeys).toEqual([]);
});

test("the rights shown are those that what is asked for takes", () => {
  const [role, ...more] = blocksIn(text, "yaml").map((code): unknown => load(code));
  expect(more).toEqual([]);
  const asked = Object.values(objectsFor()).map((object) =>
    isJsonObject(object) ? `${String(object["kind"]).toLowerCase()}s` : "",
  );
  expect(role).toEqual({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "sluice" },
    rules: [{ apiGroups: [""], resources: asked, verbs: ["get"] }],
  });
});
