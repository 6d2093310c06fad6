// One CNI call from environment and stdin to stdout and exit status. The only catch of the program is here.

import { parseNetworkConf } from "../cni/conf.ts";
import { CniError, errorCode, renderError } from "../cni/error.ts";
import { type Environment, parseRequest } from "../cni/request.ts";
import {
  currentVersion,
  renderVersions,
  requireVersion,
  supportedVersions,
} from "../cni/version.ts";
import { readSettings } from "../conf/reader.ts";
import type { Deps } from "../deps.ts";
import { type Logger, redact } from "../log.ts";
import { forgiving } from "../node/memory.ts";
import type { StdinLimits } from "../stdio.ts";
import { few } from "../text/telling.ts";
import { nameOf } from "../upkeep/task.ts";
import { version } from "../version.ts";
import { add } from "./add.ts";
import { type Call, podOf, subjectOf, type Told } from "./call.ts";
import { check } from "./check.ts";
import { del } from "./del.ts";
import { toCniError } from "./failure.ts";
import { gc } from "./gc.ts";
import { status } from "./status.ts";

export type Input = {
  readonly env: Environment;
  readonly readStdin: (limits: StdinLimits) => string | Promise<string>;
};
export type Output = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
};

type Flow = (call: Call, told: Told) => Promise<string>;

// A map, as all tables here that are asked by a word from outside: an object would answer to "constructor".
const flows: ReadonlyMap<string, Flow> = new Map([
  ["ADD", add],
  ["CHECK", check],
  ["DEL", del],
  ["GC", gc],
  ["STATUS", status],
]);

/** Serves one call. Never rejects; what went wrong is CNI JSON on stdout and exit status 1. */
export async function run(input: Input, deps: Deps): Promise<Output> {
  if ((input.env["CNI_COMMAND"] ?? "") === "") return about();
  const state: State = {
    began: deps.clock.monotonicMs(),
    cniVersion: currentVersion,
    subject: "this call",
    lenient: false,
    told: {},
  };
  try {
    return done(await serve(input, deps, state));
  } catch (thrown) {
    const error = toCniError(thrown, state.subject);
    report(error, deps, state);
    if (state.lenient) return done("");
    return { exitCode: 1, stdout: redact(renderError(error, state.cniVersion)), stderr: "" };
  }
}

/** What is known so far, for the error that may come. */
type State = {
  readonly began: number;
  cniVersion: string;
  subject: string;
  /** DEL: libcni stops the whole chain at the first DEL that fails, so what goes wrong is only told to the log. */
  lenient: boolean;
  log?: Logger;
  /** The fields of the command's one line. */
  fields?: () => Readonly<Record<string, unknown>>;
  /** Those of them that its flow tells. */
  readonly told: Told;
};

async function serve(input: Input, deps: Deps, state: State): Promise<string> {
  const request = parseRequest(input.env);
  if (request.command === "VERSION") return renderVersions();
  const { command, containerId, ifName } = request;
  state.fields = () => ({ command, containerId, ifName, pod: podOf(request) });
  state.lenient = command === "DEL";
  const network = parseNetworkConf(await readInput(input, deps, state));
  if (supportedVersions.includes(network.cniVersion)) state.cniVersion = network.cniVersion;
  const flow = flows.get(command);
  if (flow === undefined) {
    throw new CniError(errorCode.invalidEnvironment, `unknown CNI_COMMAND: ${command}`);
  }
  requireVersion(command, network.cniVersion);
  const settings = readSettings(network.document);
  const log = deps.openLog(settings.log);
  state.log = log;
  const call = makeCall({ request, network, settings, log }, deps, state);
  if (containerId !== "") state.subject = nameOf(call.subject);
  if (command === "ADD") warnOfUnknownKeys(call);
  // ADD tells of it when it is known whether the pod has a proxy, and STATUS when it is news.
  if (["CHECK", "DEL", "GC"].includes(command)) warnOfFaults(call);
  return await logged(call, flow, state);
}

// On ADD only: containerd asks for STATUS every five seconds.
function warnOfUnknownKeys({ settings, log }: Call): void {
  const keys = settings.unknownKeys;
  if (keys.length > 0) log.warn({ keys }, "the conf has keys that nobody reads");
}

function warnOfFaults({ settings, log }: Call): void {
  const { faults } = settings;
  if (faults.length === 0) return;
  log.warn({ problems: few(faults) }, "the conf has faults; defaults stand in their place");
}

/** Of stdin. The largest results of ordinary plugins, with hundreds of addresses and routes, stay far below. */
const mostBytes = 1_310_720;

/** For stdin, since how long the whole call may take is in it: as long as it may where nothing else is said. */
const stdinMs = 20_000;

async function readInput({ readStdin }: Input, { clock }: Deps, { began }: State): Promise<string> {
  const remainingMs = () => began + stdinMs - clock.monotonicMs();
  try {
    return await readStdin({ mostBytes, remainingMs });
  } catch (cause) {
    if (cause instanceof CniError) throw cause;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new CniError(errorCode.ioFailure, `error reading from stdin: ${problem}`, { cause });
  }
}

function report({ code, message, details, cause }: CniError, deps: Deps, state: State): void {
  const log = state.log ?? deps.openLog({ level: "info", file: "" });
  const fields = state.fields?.() ?? {};
  log[isRepeated(state) ? "debug" : "error"]({ ...fields, code, details, err: cause }, message);
}

type Read = Pick<Call, "request" | "network" | "settings" | "log">;

function makeCall(read: Read, deps: Deps, { began }: State): Call {
  const { clock } = deps;
  const { stateDir, timeoutMs } = read.settings;
  const end = began + timeoutMs;
  return {
    ...read,
    subject: subjectOf(read.request, read.network),
    deps,
    store: deps.openStore(stateDir),
    memory: forgiving(deps.openMemory(stateDir), (error) => {
      read.log.debug({ err: error }, "what is known of the node could not be read or kept");
    }),
    remainingMs: () => Math.max(0, end - clock.monotonicMs()),
  };
}

// One line for each command, whatever came of it.
async function logged(call: Call, flow: Flow, state: State): Promise<string> {
  const { clock, exec } = call.deps;
  const began = clock.monotonicMs();
  const { told } = state;
  let execs = 0;
  const counting: Deps["exec"] = (request) => {
    execs += 1;
    return exec(request);
  };
  const fields = () => ({
    command: call.request.command,
    containerId: call.request.containerId,
    ifName: call.request.ifName,
    pod: call.subject.pod,
    ...told,
    execs,
    durationMs: Math.round((clock.monotonicMs() - began) * 10) / 10,
  });
  state.fields = fields;
  const stdout = await flow({ ...call, deps: { ...call.deps, exec: counting } }, told);
  call.log[isRepeated(state) ? "debug" : "info"](fields(), "done");
  return stdout;
}

// STATUS says the same every five seconds, where containerd asks for it.
function isRepeated({ told }: State): boolean {
  return told.repeated === true;
}

function done(stdout: string): Output {
  return { exitCode: 0, stdout, stderr: "" };
}

// Called by hand, without a command: as the reference plugins do.
function about(): Output {
  const versions = supportedVersions.join(", ");
  const stderr = `CNI plugin sluice ${version}\nCNI protocol versions supported: ${versions}\n`;
  return { exitCode: 0, stdout: "", stderr };
}
