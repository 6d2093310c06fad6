// Every verb in every version of the spec, through both forms of the plugin: an attachment's life, with whole answers.
import { describe, expect } from "vitest";
import { failure, forms, type Program, test } from "./scene.ts";

const versions = '["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]';
const about = `{"cniVersion":"1.1.0","supportedVersions":${versions}}`;
const silent = "";

/** What the verbs that came later print in each version. */
const answers: readonly {
  readonly cniVersion: string;
  readonly check: string;
  readonly gc: string;
  readonly status: string;
}[] = [
  { cniVersion: "0.3.0", check: no("CHECK"), gc: no("GC"), status: no("STATUS") },
  { cniVersion: "0.3.1", check: no("CHECK"), gc: no("GC"), status: no("STATUS") },
  { cniVersion: "0.4.0", check: silent, gc: no("GC"), status: no("STATUS") },
  { cniVersion: "1.0.0", check: silent, gc: no("GC"), status: no("STATUS") },
  { cniVersion: "1.1.0", check: silent, gc: silent, status: silent },
];

function no(verb: string): string {
  return failure(1, `config version does not allow ${verb}`);
}

describe.for(Object.entries(forms))("the %s", ([, program]) => {
  test.concurrent.for(answers)(
    "serves the verbs that $cniVersion has when the conf is of $cniVersion",
    async ({ cniVersion, check, gc, status }, { scene }) => {
      const result = { cniVersion, ips: [{ version: "4", address: "10.9.0.2/24" }] };
      const attachments = [{ containerID: "c1", ifname: "eth0" }];
      const conf = scene.conf({
        cniVersion,
        prevResult: result,
        "cni.dev/valid-attachments": attachments,
      });
      const said: string[] = [];
      for (const command of ["VERSION", "STATUS", "ADD", "CHECK", "GC", "CHECK", "DEL", "DEL"]) {
        const { exitCode, stdout } = await scene.call(command, conf, { program });
        said.push(`${command} ${exitCode} ${stdout}`);
      }
      expect(said).toEqual([
        `VERSION 0 ${about}`,
        `STATUS ${line(status, cniVersion)}`,
        `ADD 0 ${JSON.stringify(result)}`,
        `CHECK ${line(check, cniVersion)}`,
        `GC ${line(gc, cniVersion)}`,
        `CHECK ${line(check, cniVersion)}`,
        "DEL 0 ",
        "DEL 0 ",
      ]);
      expect(scene.records()).toEqual([]);
    },
  );

  test("says who it is on stderr alone when there is no command", async ({ scene }) => {
    const env = { CNI_COMMAND: undefined };
    const { exitCode, stdout, stderr } = await scene.call("", "", { program, env });
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
    expect(stderr).toMatch(
      /^CNI plugin sluice \S+\nCNI protocol versions supported: 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n$/,
    );
  });
});

// Errors are of the conf's version.
function line(stdout: string, cniVersion: string): string {
  return stdout === silent ? "0 " : `1 ${stdout.replace("1.1.0", cniVersion)}`;
}

const libcni = { CNI_CONTAINERID: "", CNI_NETNS: "dummy", CNI_IFNAME: "dummy", CNI_PATH: "dummy" };

const stdins: [when: string, stdin: string][] = [
  ["stdin has libcni's version", '{"cniVersion":"1.1.0"}'],
  ["stdin has an unknown version", '{"cniVersion":"9.9.9"}'],
  ["stdin is empty", ""],
  ["stdin is no JSON", "{"],
];

test.concurrent.for(stdins)("VERSION answers when %s", async ([, stdin], { scene }) => {
  const { exitCode, stdout, stderr } = await scene.call("VERSION", stdin, { env: libcni });
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: about, stderr: "" });
});

test("VERSION answers when stdin never ends", async ({ scene }) => {
  // The writing end stays open for longer than the call may take.
  const script = 'exec "$@" < <(exec sleep 5 >/dev/null 2>&1)';
  const program: Program = ["bash", "-c", script, "bash", ...forms.executable];
  const began = performance.now();
  const { stdout } = await scene.call("VERSION", "", { program });
  expect(stdout).toBe(about);
  expect(performance.now() - began).toBeLessThan(4_000);
});

test("ADD speaks cniVersion when the list names others in cniVersions", async ({ scene }) => {
  const cniVersions = ["0.4.0", "1.0.0", "1.1.0", "1.2.0"];
  const prevResult = { cniVersion: "0.4.0" };
  const conf = scene.conf({ cniVersion: "0.4.0", cniVersions, prevResult });
  const { stdout, stderr } = await scene.call("ADD", conf);
  expect(stdout).toBe('{"cniVersion":"0.4.0"}');
  expect(stderr).not.toContain("cniVersions");
});
