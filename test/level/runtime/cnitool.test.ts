// The built plugin behind the reference bridge, run by cnitool: libcni hands over what a runtime would.
import { test as base, describe, expect } from "vitest";
import { type Host, makeHost, type Pod, type Verb } from "../../lab/host.ts";
import { canMakeNetns } from "../../lab/netns.ts";
import { changeNat, savedNat } from "../../lab/pod-nat.ts";

type Box = { readonly host: Host; readonly pod: Pod };
type SetUp = (cniVersion: string, dualStack?: boolean) => Box;

const test = base.extend("setUp", ({ skip }, { onCleanup }): SetUp => {
  if (!canMakeNetns()) {
    const reason = "network namespaces need root";
    if (process.env["CI"] !== undefined) throw new Error(reason);
    skip(true, reason);
  }
  return (cniVersion, dualStack = false) => {
    const host = makeHost({ purpose: "cnitool", cniVersion, dualStack });
    onCleanup(host.remove);
    return { host, pod: host.addPod("pod") };
  };
});

const jump = '-A OUTPUT -m comment --comment "sluice/outbound" -j PROXY_INIT_OUTPUT';

describe.for(["0.3.0", "0.3.1"])("a list of %s", (cniVersion) => {
  test("add() passes on what bridge printed, and del() leaves nothing", async ({ setUp }) => {
    const box = setUp(cniVersion);
    expect(await addAndCompare(box)).toMatchObject({ cniVersion });
    expect(savedNat(box.pod)).toContain(jump);
    await delAndLook(box);
  });
});

describe.for(["0.4.0", "1.0.0", "1.1.0"])("a list of %s", (cniVersion) => {
  test("check() is content between add() and del()", async ({ setUp }) => {
    const box = setUp(cniVersion);
    const ips = [{ address: "10.213.7.2/24" }];
    expect(await addAndCompare(box)).toMatchObject({ cniVersion, ips });
    expect(savedNat(box.pod)).toContain(jump);
    await succeed(box, "check");
    await delAndLook(box);
  });

  test("check() names a jump that someone deleted, until ADD heals it", async ({ setUp }) => {
    const box = setUp(cniVersion);
    const { host, pod } = box;
    const result = await addAndCompare(box);
    changeNat(pod, host.backendOf(pod), [jump.replace("-A", "-D")]);

    const { exitCode, stderr } = await host.cnitool("check", pod);
    expect(exitCode).toBe(1);
    const subject = `container ${pod.containerId}`;
    expect(stderr).toContain(`${subject} is not redirected as intended: 1 drift`);
    expect(stderr).toContain(`missing-jump (ipv4 nat OUTPUT): expected ${jump}; found nothing`);

    const healed = await host.plugin("add", pod);
    expect(healed.exitCode).toBe(0);
    expect(JSON.parse(healed.stdout)).toEqual(result);
    await succeed(box, "check");
    await delAndLook(box);
  });
});

test("a dual-stack pod is redirected, checked and cleaned in both families", async ({ setUp }) => {
  const box = setUp("1.1.0", true);
  const ips = [{ address: "10.213.7.2/24" }, { address: "fd00:213:7::2/64" }];
  expect(await addAndCompare(box)).toMatchObject({ ips });
  expect(savedNat(box.pod)).toContain(jump);
  expect(savedNat(box.pod, "ipv6")).toContain(jump);
  await succeed(box, "check");
  await delAndLook(box);
});

test("del() lets go of record and address when the netns is gone", async ({ setUp }) => {
  const box = setUp("1.1.0");
  await succeed(box, "add");
  box.host.removePod(box.pod);
  await succeed(box, "del");
  expectNothingKept(box);
});

/** cnitool's stdout; the test fails when cnitool does. */
async function succeed({ host, pod }: Box, verb: Verb): Promise<string> {
  const { exitCode, stdout, stderr } = await host.cnitool(verb, pod);
  expect({ verb, exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return stdout;
}

async function addAndCompare(box: Box): Promise<unknown> {
  const result: unknown = JSON.parse(await succeed(box, "add"));
  expect(result).toEqual(JSON.parse(box.host.bridgeOutput()));
  return result;
}

// Twice: runtimes do.
async function delAndLook(box: Box): Promise<void> {
  for (const _ of ["once", "again"]) {
    await succeed(box, "del");
    expect(savedNat(box.pod) + savedNat(box.pod, "ipv6")).not.toContain("PROXY_INIT");
    expectNothingKept(box);
  }
}

function expectNothingKept({ host }: Box): void {
  expect({ records: host.records(), leases: host.leases() }).toEqual({ records: [], leases: [] });
}
