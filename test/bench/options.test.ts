import { expect, test } from "vitest";
import { parseOptions } from "./options.ts";

test("parseOptions() has defaults, and smaller ones for --quick", () => {
  const full = { runs: 30, crowd: 50, quick: false, json: "", peers: [] };
  expect(parseOptions([])).toEqual(full);
  expect(parseOptions(["--quick"])).toEqual({ ...full, runs: 5, crowd: 10, quick: true });
});

test("parseOptions() takes numbers, a file, and any number of peers", () => {
  const peers = ["--peer", "linkerd-cni=/opt/a=b", "--peer", "/opt/cni/bin/other"];
  expect(parseOptions(["--quick", "--runs", "7", "--json", "out.json", ...peers])).toMatchObject({
    runs: 7,
    json: "out.json",
    peers: [
      { name: "linkerd-cni", path: "/opt/a=b" },
      { name: "other", path: "/opt/cni/bin/other" },
    ],
  });
});

test.for([["--runs", "0"], ["--runs", "x"], ["--crowd", "-1"], ["--fast"], ["file"]])(
  "parseOptions() refuses %j",
  (args) => {
    expect(() => parseOptions(args)).toThrow();
  },
);
