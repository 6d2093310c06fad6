// The built plugin behind the reference bridge, run by cnitool: libcni hands over what a runtime would.
import { afterEach, describe, expect, it } from "vitest";
import { type Host, makeHost, type Pod, type Verb } from "../lab/host.ts";
import { canMakeNetns } from "../lab/netns.ts";
import { changeNat, savedNat } from "../lab/pod-nat.ts";

const jump = '-A OUTPUT -m comment --comment "sluice/outbound" -j PROXY_INIT_OUTPUT';

/** The versions that have CHECK. */
const versions = ["0.4.0", "1.0.0", "1.1.0"];

let hosts: Host[] = [];

afterEach(() => {
  for (const host of hosts) host.remove();
  hosts = [];
});

function setUp(cniVersion: string, dualStack = false): { host: Host; pod: Pod } {
  const host = makeHost({ purpose: "cnitool", cniVersion, dualStack });
  hosts.push(host);
  return { host, pod: host.addPod("pod") };
}

/** cnitool's stdout; it is an error of the test when cnitool does not succeed. */
async function succeed(host: Host, verb: Verb, pod: Pod): Promise<string> {
  const { exitCode, stdout, stderr } = await host.cnitool(verb, pod);
  expect({ verb, exitCode, stderr }).toMatchObject({ verb, exitCode: 0 });
  return stdout;
}

async function addAndCompare(host: Host, pod: Pod): Promise<unknown> {
  const result: unknown = JSON.parse(await succeed(host, "add", pod));
  expect(result).toEqual(JSON.parse(host.bridgeOutput()));
  return result;
}

async function delAndLook(host: Host, pod: Pod): Promise<void> {
  await succeed(host, "del", pod);
  expect(savedNat(pod) + savedNat(pod, "ipv6")).not.toContain("PROXY_INIT");
  expect({ records: host.records(), leases: host.leases() }).toEqual({ records: [], leases: [] });
  await succeed(host, "del", pod);
}

describe.skipIf(!(canMakeNetns() || process.env["CI"]))("cnitool, bridge, sluice", () => {
  it.each(["0.3.0", "0.3.1"])("add() and del() of a %s list leave nothing", async (cniVersion) => {
    const { host, pod } = setUp(cniVersion);
    expect(await addAndCompare(host, pod)).toMatchObject({ cniVersion });
    expect(savedNat(pod)).toContain(jump);
    await delAndLook(host, pod);
  });

  it.each(versions)("check() of a %s list succeeds between add() and del()", async (version) => {
    const { host, pod } = setUp(version);
    expect(await addAndCompare(host, pod)).toMatchObject({
      cniVersion: version,
      ips: [{ address: "10.213.7.2/24" }],
    });
    expect(savedNat(pod)).toContain(jump);
    await succeed(host, "check", pod);
    await delAndLook(host, pod);
  });

  it.each(versions)("check() of a %s list names the rule that someone deleted", async (version) => {
    const { host, pod } = setUp(version);
    await succeed(host, "add", pod);
    changeNat(pod, host.backendOf(pod), [jump.replace("-A", "-D")]);
    const { exitCode, stderr } = await host.cnitool("check", pod);
    expect(exitCode).toBe(1);
    const subject = `container ${pod.containerId.slice(0, 13)}`;
    expect(stderr).toContain(`${subject} is not redirected as intended: 1 drift`);
    expect(stderr).toContain(`missing-jump (ipv4 nat OUTPUT): expected ${jump}; found nothing`);
  });

  it("plugin() heals what check() found when a runtime calls it again with prevResult", async () => {
    const { host, pod } = setUp("1.1.0");
    const result = await addAndCompare(host, pod);
    changeNat(pod, host.backendOf(pod), [jump.replace("-A", "-D")]);
    const healed = await host.plugin("add", pod);
    expect(healed.exitCode).toBe(0);
    expect(JSON.parse(healed.stdout)).toEqual(result);
    await succeed(host, "check", pod);
  });

  it("add(), check() and del() of a dual-stack list work on both families", async () => {
    const { host, pod } = setUp("1.1.0", true);
    expect(await addAndCompare(host, pod)).toMatchObject({
      ips: [{ address: "10.213.7.2/24" }, { address: "fd00:213:7::2/64" }],
    });
    expect(savedNat(pod)).toContain(jump);
    expect(savedNat(pod, "ipv6")).toContain(jump);
    await succeed(host, "check", pod);
    await delAndLook(host, pod);
  });

  it("del() succeeds when the netns is gone and lets go of record and address", async () => {
    const { host, pod } = setUp("1.1.0");
    await succeed(host, "add", pod);
    host.removePod(pod);
    await succeed(host, "del", pod);
    expect({ records: host.records(), leases: host.leases() }).toEqual({ records: [], leases: [] });
  });
});
