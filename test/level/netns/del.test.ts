// DEL after ADD: nothing of ours is left in the netns or the state directory, and all else is as it was.
import { describe, expect } from "vitest";
import { backends, families } from "../../../src/netfilter/table.ts";
import { foreignLines, loadState, ownLines, type StateName, save } from "../../lab/states.ts";
import { named, stateConf, test } from "./level.ts";

/** What was there before ADD, and what is ours after DEL. */
const starts: readonly { state: StateName; left: readonly string[] }[] = [
  { state: "nothing in it", left: [] },
  { state: "its rules flushed", left: [] },
  { state: "all in order", left: [] },
  { state: "linkerd-init's rules, interrupted", left: [] },
  { state: "foreign rules only", left: [] },
  { state: "foreign rules around ours", left: [] },
  { state: "foreign rules between doubled jumps", left: [] },
  // The kernel keeps a chain that another leads into; empty, it lets everything through.
  { state: "a foreign chain that jumps to ours", left: [":PROXY_INIT_REDIRECT - [0:0]"] },
];

/** What happens to our rules between ADD and DEL. */
const damages: readonly StateName[] = [
  "its rules flushed",
  "the outbound jump doubled",
  "a jump for TCP only",
  "a goto in place of a jump",
  "an extra rule",
  "one of our chains missing",
  "chains empty and without jumps",
  "foreign rules between doubled jumps",
];

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  test.for(named(starts, ({ state }) => state))(
    "DEL leaves nothing of ours and all else when ADD had found %s",
    ([, { state, left }], { attachment }) => {
      const { netns, call } = attachment;
      const conf = stateConf(backend, ...families);
      const places = families.map((family) => ({ netns, backend, family }));
      for (const place of places) loadState(place, state);
      const foreign = places.map((place) => foreignLines(save(place)));
      call("ADD", conf);

      expect(call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });

      expect(places.map((place) => ownLines(save(place)))).toStrictEqual([left, left]);
      expect(places.map((place) => foreignLines(save(place)))).toStrictEqual(foreign);
      expect(attachment.records()).toStrictEqual([]);
      expect(call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    },
  );

  test.for(damages)("DEL leaves nothing of ours when it finds %s", (state, { attachment }) => {
    const { netns, call } = attachment;
    const conf = stateConf(backend, ...families);
    const places = families.map((family) => ({ netns, backend, family }));
    call("ADD", conf);
    for (const place of places) loadState(place, state);

    expect(call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });

    expect(places.map((place) => ownLines(save(place)))).toStrictEqual([[], []]);
  });

  test("DEL leaves the rules to the other attachment when a pod has two", ({ attachment }) => {
    const { netns, call } = attachment;
    const conf = stateConf(backend, "ipv4");
    const place = { netns, backend, family: "ipv4" } as const;
    call("ADD", conf);
    call("ADD", conf, { IFNAME: "net1" });
    const before = save(place);

    expect(call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    expect(ownLines(save(place))).toStrictEqual(ownLines(before));
    expect(call("DEL", conf, { IFNAME: "net1" })).toMatchObject({ exitCode: 0, stdout: "" });
    expect(ownLines(save(place))).toStrictEqual([]);
  });
});
