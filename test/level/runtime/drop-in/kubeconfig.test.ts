// The kubeconfig and the API as they are while a node and its pods come up: absent, half, renewed, behind; and kubeconfigs that
// ask for what is not done, of which no secret is told.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { objectsFor, paths, podName, podUid } from "../../../lab/api-objects.ts";
import { kubeconfigObject, type Parts } from "../../../lab/kubeconfig.ts";
import { argsOf, confFor, lookInto, test } from "./level.ts";

test("ADD waits for a kubeconfig that is not there for a moment", async ({ api, pod }) => {
  const text = readFileSync(pod.kubeconfig);
  rmSync(pod.kubeconfig);
  const added = pod.call("ADD", confFor(pod));
  await sleep(2_000);
  writeFileSync(pod.kubeconfig, "");
  await sleep(200);
  writeFileSync(pod.kubeconfig, text);
  expect(await added).toMatchObject({ exitCode: 0 });
  expect(api.requests).toContain(`GET ${paths.pod}`);
});

test("ADD reads a kubeconfig and a token that are replaced all the time", async ({ api, pod }) => {
  const token = join(pod.dir, "token");
  const halves = [
    () => writeFileSync(token, ""),
    () => writeFileSync(token, api.token),
    () => writeFileSync(pod.kubeconfig, "clusters:\n- na"),
    () => writeFileSync(pod.kubeconfig, content),
    () => rmSync(token),
    () => writeFileSync(token, api.token),
  ];
  const content = JSON.stringify(kubeconfigObject(api, { user: { tokenFile: "token" } }));
  for (const write of halves) write();
  let turn = 0;
  const timer = setInterval(() => halves[turn++ % halves.length]?.(), 40);
  try {
    const conf = confFor(pod);
    for (let i = 0; i < 5; i++) expect(await pod.call("ADD", conf)).toMatchObject({ exitCode: 0 });
  } finally {
    clearInterval(timer);
  }
});

test("ADD asks once more for a pod that the server does not know yet", async ({ api, pod }) => {
  api.next.push("404");
  expect(await pod.call("ADD", confFor(pod))).toMatchObject({ exitCode: 0 });
  expect(api.requests.slice(0, 2)).toEqual([`GET ${paths.pod}`, `GET ${paths.pod}`]);
});

test("ADD fails for a pod that the server knows by another UID, and writes nothing", async ({
  api,
  pod,
}) => {
  const CNI_ARGS = argsOf(podName).replace(podUid, "other");
  const { stdout } = await pod.call("ADD", confFor(pod), { CNI_ARGS });
  expect(JSON.parse(stdout)).toMatchObject({
    code: 11,
    msg: `pod emoji/web of the API server is another pod of that name: UID ${podUid}, not other`,
  });
  expect([lookInto(pod).untouched, pod.records()]).toEqual([true, []]);
  api.objects = objectsFor({ annotations: { "kubernetes.io/config.mirror": "other" } });
  expect(await pod.call("ADD", confFor(pod), { CNI_ARGS })).toMatchObject({ exitCode: 0 });
});

const refused: [what: string, parts: Parts, problem: string][] = [
  [
    "a password in the server's URL",
    { cluster: { server: "https://user:marker-pw@127.0.0.1:1" } },
    "server: a user or password in it is not honoured; give a token instead",
  ],
  [
    "a proxy",
    { cluster: { "proxy-url": "http://user:marker-pw@127.0.0.1:1" } },
    "proxy-url is not honoured; the API server must be reached without it",
  ],
  [
    "a password",
    { user: { username: "", password: "marker-pw" } },
    "password is not honoured; give a token of that user instead",
  ],
];

test.for(refused)(
  "ADD refuses a kubeconfig with %s by its name, and tells no secret",
  async ([, parts, problem], { api, pod }) => {
    writeFileSync(pod.kubeconfig, JSON.stringify(kubeconfigObject(api, parts)));
    const conf = confFor(pod, { top: { log_level: "debug" } });
    for (const command of ["ADD", "STATUS"]) {
      const { stdout, stderr } = await pod.call(command, conf);
      // STATUS only warns of it: pods without a proxy can be served.
      expect(stdout + stderr).toContain(`kubeconfig ${pod.kubeconfig}: ${problem}`);
      expect(stdout + stderr).not.toContain("marker");
    }
    expect(JSON.parse((await pod.call("ADD", conf)).stdout)).toMatchObject({ code: 103 });
    expect(api.requests).toEqual([]);
  },
);
