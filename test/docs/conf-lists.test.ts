// The example conf lists of conf/: they parse, they mean something, and the long one has every option.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/cni/conf.ts";
import { readSettings } from "../../src/conf/reader.ts";
import { problemsOf } from "../../src/conf/settings.ts";
import { root } from "../lab/plugin.ts";
import { options } from "./schema.ts";

const names = readdirSync(join(root, "conf")).filter((name) => name.endsWith(".conflist"));

function pluginsOf(name: string): JsonObject[] {
  const list: unknown = JSON.parse(readFileSync(join(root, "conf", name), "utf8"));
  const plugins = isJsonObject(list) ? list["plugins"] : undefined;
  return Array.isArray(plugins) ? plugins.filter(isJsonObject) : [];
}

function entryOf(name: string): JsonObject {
  return pluginsOf(name).at(-1) ?? {};
}

test("there are a list with every option and a minimal one", () => {
  expect(names).toEqual(expect.arrayContaining(["every-option.conflist", "minimal.conflist"]));
});

test.each(names)(
  "%s is a list whose last plugin is ours, after one that makes the interface",
  (name) => {
    const types = pluginsOf(name).map(({ type }) => type);
    expect([types.length > 1, types.at(-1)]).toEqual([true, "sluice"]);
  },
);

test.each(names)("%s has an entry that the plugin takes, without a word of warning", (name) => {
  const settings = readSettings(entryOf(name));
  const { unknownKeys, notes } = settings;
  expect([unknownKeys, problemsOf(settings), notes]).toEqual([[], [], []]);
});

test("every-option.conflist has every option", () => {
  const entry = entryOf("every-option.conflist");
  const has = ({ path }: { path: string }) =>
    path
      .replaceAll("`", "")
      .split(".")
      .reduce<unknown>((value, key) => (isJsonObject(value) ? value[key] : undefined), entry);
  expect(options().filter((option) => has(option) === undefined)).toEqual([]);
});

test("minimal.conflist has nothing that the rules could do without", () => {
  const { linkerd } = entryOf("minimal.conflist");
  const keys = isJsonObject(linkerd) ? Object.keys(linkerd) : [];
  expect(keys).toEqual([
    "incoming-proxy-port",
    "outgoing-proxy-port",
    "proxy-uid",
    "inbound-ports-to-ignore",
  ]);
});
