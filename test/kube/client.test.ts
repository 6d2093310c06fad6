// Asking the API server: what each way of failing becomes, what is tried again, and for how long.
import { renameSync } from "node:fs";
import { expect } from "vitest";
import { type KubeSettings, openKube } from "../../src/kube/client.ts";
import { cniError, rejectionOf, type Thrown } from "../fake/thrown.ts";
import { paths, podObject } from "../lab/api-objects.ts";
import type { ApiStub, Mode } from "../lab/api-stub.ts";
import { kubeconfigObject, linkerdKubeconfig } from "../lab/kubeconfig.ts";
import { type Files, settingsFor, test } from "./level.ts";

const asked = `GET API${paths.pod}`;

/** So short a time that nothing is tried twice, and a server that does not answer is left after half a second. */
const oneTryMs = 3_500;

async function get(settings: KubeSettings): Promise<unknown> {
  const ask = await openKube(settings);
  return await ask(paths.pod);
}

function noAnswer(problem: string): Thrown {
  return cniError(
    11,
    `the API server did not answer: ${asked}: ${problem}`,
    "a pod that may be meshed does not start without its redirect; see that the API server can be reached from the node",
  );
}

function noFacts(problem: string, details: string): Thrown {
  return cniError(103, `the API server gave no pod facts: ${asked}: ${problem}`, details);
}

const rejected = cniError(
  11,
  `the API server rejected our token: ${asked}`,
  "the token is of FILE, 0 s old; see that the node agent renews it",
);
const forbidden =
  'pods "web" is forbidden: User "system:serviceaccount:sluice:sluice" cannot get resource "pods" in API group "" in the namespace "emoji"';
const grant = "give the plugin's user the right to get pods, namespaces and services";
const gone =
  "the pod is not, or no longer, known to the API server; it may be no pod of Kubernetes";
const noApi = "see that the kubeconfig's server is a Kubernetes API server";

const failures: [mode: Mode, error: Thrown, requests: number][] = [
  ["401", rejected, 2],
  ["403", noFacts(`HTTP 403 ${forbidden}`, grant), 1],
  ["404", noFacts('HTTP 404 pods "web" not found', gone), 1],
  ["302", noFacts("HTTP 302", noApi), 1],
  [
    "429",
    noAnswer("HTTP 429 the server has received too many requests, please try again later"),
    1,
  ],
  ["500", noAnswer("HTTP 500 etcdserver: request timed out"), 1],
  ["503", noAnswer("HTTP 503 apiserver not ready"), 1],
  ["hang", noAnswer("no whole answer in 500 ms"), 1],
  ["slow", noAnswer("no whole answer in 500 ms"), 1],
  ["cut", noAnswer("aborted"), 1],
  ["garbage", noFacts("HTTP 200 an answer that is not JSON", noApi), 1],
  ["deep", noFacts("HTTP 200 an answer that is nested too deep", noApi), 1],
  ["headers", noAnswer("Parse Error: Header overflow"), 1],
  ["huge", noFacts("HTTP 200 an answer of more than 4194304 bytes", noApi), 1],
  ["echo", noFacts("HTTP 400 no upstream for Bearer [redacted]", noApi), 1],
];

test.for(failures)(
  "openKube() gives an error that says what to do when the server's mode is %s",
  async ([mode, error, requests], { api, files }) => {
    api.mode = mode;
    const file = files.write("kubeconfig", linkerdKubeconfig(api));
    const { settings } = settingsFor(file, oneTryMs);
    expect(plain(await rejectionOf(get(settings)), api, file)).toEqual(error);
    expect(api.requests).toEqual(new Array(requests).fill(`GET ${paths.pod}`));
  },
);

test("openKube() gives an error when nobody listens", async ({ api, files }) => {
  const file = files.write("kubeconfig", linkerdKubeconfig(api));
  await api.close();
  const { settings } = settingsFor(file, oneTryMs);
  const error = plain(await rejectionOf(get(settings)), api, file);
  expect(error).toEqual(noAnswer("connect ECONNREFUSED API"));
});

const needed = "the pod cannot be read without it; see that the node agent runs and has written it";

/** What a writer leaves there for a moment, and what is said when it stays. */
const halves: [what: string, leave: (files: Files, api: ApiStub) => void, problem: string][] = [
  [
    "is not there",
    () => undefined,
    "cannot be read: ENOENT: no such file or directory, open 'FILE'",
  ],
  ["is empty", ({ write }) => write("kubeconfig", ""), "it is not a kubeconfig"],
  [
    "is half",
    ({ write }, api) => {
      const text = linkerdKubeconfig(api);
      write("kubeconfig", text.slice(0, text.indexOf("contexts:")));
    },
    "contexts: expected array",
  ],
  [
    "lacks its last letters",
    ({ write }, api) => write("kubeconfig", linkerdKubeconfig(api).slice(0, -5)),
    "it has no context linkerd-cni-con",
  ],
  [
    "names a token file that is empty",
    ({ write }, api) => {
      write("token", "");
      write("kubeconfig", kubeconfigObject(api, { user: { tokenFile: "token" } }));
    },
    "the token of DIR/token is empty, or none",
  ],
  [
    "names a token file that is not there",
    ({ write }, api) => write("kubeconfig", kubeconfigObject(api, { user: { tokenFile: "gone" } })),
    "cannot be read: ENOENT: no such file or directory, open 'DIR/gone'",
  ],
];

test.for(halves)(
  "openKube() waits for a kubeconfig that %s, and not for ever",
  async ([, leave, problem], { api, files }) => {
    leave(files, api);
    const file = `${files.dir}/kubeconfig`;
    const { settings, sleeps } = settingsFor(file, 20_000);
    const told = problem.replace("FILE", file).replace("DIR", files.dir);
    expect(await rejectionOf(openKube(settings))).toEqual(
      cniError(11, `kubeconfig ${file}: ${told}`, needed),
    );
    // Three seconds are the rules'.
    const slept = sleeps.reduce((sum, ms) => sum + ms, 0);
    expect([sleeps.length > 10, slept > 14_000, slept < 17_000]).toEqual([true, true, true]);
    expect(api.requests).toEqual([]);
  },
);

test.for(halves)(
  "openKube() takes a kubeconfig that %s for a moment",
  async ([, leave], { api, files }) => {
    leave(files, api);
    const { settings, sleeps } = settingsFor(`${files.dir}/kubeconfig`, 20_000);
    const mended = { ...settings, clock: { ...settings.clock, sleep: settings.clock.sleep } };
    mended.clock.sleep = (ms) => {
      if (sleeps.length === 2) files.write("kubeconfig", linkerdKubeconfig(api));
      return settings.clock.sleep(ms);
    };
    expect(await get(mended)).toEqual(podObject());
    expect(sleeps).toHaveLength(3);
  },
);

test("openKube() waits for a kubeconfig that is half while a token is renewed", async ({
  api,
  files,
}) => {
  const file = files.write("kubeconfig", kubeconfigObject(api, { user: { token: "old" } }));
  api.onRequest = () => files.write("kubeconfig", "");
  const { settings, sleeps } = settingsFor(file, 20_000);
  const { clock } = settings;
  const sleep = (ms: number) => {
    files.write("kubeconfig", linkerdKubeconfig(api));
    api.onRequest = () => undefined;
    return clock.sleep(ms);
  };
  expect(await get({ ...settings, clock: { ...clock, sleep } })).toEqual(podObject());
  expect([api.requests.length, sleeps.length]).toEqual([2, 1]);
});

test("openKube() does not wait for a kubeconfig that asks for what is not done", async ({
  api,
  files,
}) => {
  const proxied = kubeconfigObject(api, { cluster: { "proxy-url": "http://127.0.0.1:1" } });
  const file = files.write("kubeconfig", proxied);
  const { settings, sleeps } = settingsFor(file, 20_000);
  const problem = "proxy-url is not honoured; the API server must be reached without it";
  expect(await rejectionOf(openKube(settings))).toEqual(
    cniError(103, `kubeconfig ${file}: ${problem}`, needed),
  );
  expect([sleeps, api.requests]).toEqual([[], []]);
});

test("openKube() asks again for a pod that is not known yet", async ({ api, files }) => {
  const file = files.write("kubeconfig", linkerdKubeconfig(api));
  api.next.push("404", "404");
  const { settings, sleeps } = settingsFor(file, 20_000);
  expect(await get(settings)).toEqual(podObject());
  expect([api.requests.length, sleeps.length]).toEqual([3, 2]);
});

test("openKube() gives a pod up soon that stays unknown", async ({ api, files }) => {
  const file = files.write("kubeconfig", linkerdKubeconfig(api));
  api.mode = "404";
  const { settings, sleeps } = settingsFor(file, 20_000);
  const error = plain(await rejectionOf(get(settings)), api, file);
  expect(error).toEqual(noFacts('HTTP 404 pods "web" not found', gone));
  expect(api.requests).toHaveLength(4);
  expect(sleeps.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(3_000);
});

test("openKube() asks again, each time later and not for ever, when the server may recover", async ({
  api,
  files,
}) => {
  const file = files.write("kubeconfig", linkerdKubeconfig(api));
  api.mode = "503";
  const { settings, sleeps } = settingsFor(file, 20_000);
  expect(await rejectionOf(get(settings))).toMatchObject({ code: 11 });
  expect(api.requests.length).toBe(sleeps.length + 1);
  expect(sleeps.length).toBeGreaterThan(4);
  const tooLong = sleeps.filter((ms, i) => ms < 0 || ms > 200 * 2 ** Math.min(i + 1, 4));
  expect(tooLong).toEqual([]);
  // Three seconds are the rules'.
  expect(sleeps.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(17_000);
});

test("openKube() gives the object when the server recovers", async ({ api, files }) => {
  const file = files.write("kubeconfig", linkerdKubeconfig(api));
  api.next.push("503", "cut", "429");
  const { settings, sleeps } = settingsFor(file, 20_000);
  expect(await get(settings)).toEqual(podObject());
  expect([api.requests.length, sleeps.length]).toEqual([4, 3]);
});

test("openKube() asks a server that hangs anew while there is time", async ({ api, files }) => {
  const file = files.write("kubeconfig", linkerdKubeconfig(api));
  api.next.push("hang");
  // A second for the try, three for the rules.
  const { settings } = settingsFor(file, 4_000);
  const began = performance.now();
  expect(await get(settings)).toEqual(podObject());
  expect(performance.now() - began).toBeGreaterThan(990);
  expect(performance.now() - began).toBeLessThan(1_900);
});

test.for([
  ["the kubeconfig", (token: string) => ({ user: { token } })],
  ["the token's file", () => ({ user: { tokenFile: "token" } })],
] as const)(
  "openKube() reads %s once more when the token is rejected",
  async ([, parts], { api, files }) => {
    // Renewed after the first request, as the node agent does it: at once, by a rename.
    const writeAll = (token: string) => {
      for (const [name, content] of [
        ["token", token],
        ["kubeconfig", kubeconfigObject(api, parts(token))],
      ] as const) {
        renameSync(files.write(`${name}.new`, content), `${files.dir}/${name}`);
      }
    };
    writeAll("an-old-token");
    api.onRequest = () => writeAll(api.token);
    const { settings, sleeps } = settingsFor(`${files.dir}/kubeconfig`, 20_000);
    const ask = await openKube(settings);
    expect(await ask(paths.pod)).toEqual(podObject());
    expect(await ask(paths.pod)).toEqual(podObject());
    expect([api.requests.length, sleeps]).toEqual([3, []]);
  },
);

/** An error without what differs from run to run. */
function plain(thrown: unknown, { url }: ApiStub, file: string): unknown {
  const text = JSON.stringify(thrown).replaceAll(url, "API").replaceAll(file, "FILE");
  return JSON.parse(text.replaceAll(url.slice("https://".length), "API"));
}
