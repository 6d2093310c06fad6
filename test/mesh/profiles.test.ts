// The table of meshes.
import { expect, test } from "vitest";
import { defaultProfile, profileNamed } from "../../src/mesh/profiles.ts";

test("profileNamed() knows Linkerd, which stands for records that name none", () => {
  expect(profileNamed("linkerd")).toBe(defaultProfile);
  expect(["", "Linkerd", "istio", "constructor"].map(profileNamed)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
