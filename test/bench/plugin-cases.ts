// The cases of a CNI plugin, ours or another's. Edge: makes netns and files.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Case, crowdEach, familiesLabel, type Label } from "./case.ts";
import { cniEnv, confText, type Source } from "./conf.ts";
import type { Lab } from "./lab.ts";
import { type Job, run } from "./runner.ts";
import type { Where } from "./shell.ts";

/** A plugin's executable, as an argument list. */
export type Program = {
  readonly way: string;
  readonly argv: readonly [string, ...string[]];
  readonly isOurs: boolean;
};

export type Situation = Where & { readonly source: Source; readonly kubeconfig: string };

/** Calls of one plugin about attachments of one conf. */
type Caller = {
  readonly job: (command: string, netns: string, containerId: string) => Job;
  /** Calls now, unmeasured. */
  readonly call: (command: string, netns: string) => void;
  readonly forget: () => void;
};

/** ADD to a new netns. */
export function addFresh(lab: Lab, program: Program, situation: Situation): Case {
  const { job, forget } = caller(lab, program, situation);
  const prepare = () => {
    forget();
    return lab.passing(1).map((netns) => job("ADD", netns, "c"));
  };
  return { ...labelled(program, situation, "ADD, new pod"), prepare };
}

/** The same for many pods at once. */
export function addCrowd(
  lab: Lab,
  program: Program,
  situation: Situation & { readonly size: number },
): Case {
  const { job, forget } = caller(lab, program, situation);
  const { size } = situation;
  const prepare = () => {
    forget();
    return lab.passing(size).map((netns, i) => job("ADD", netns, `c${i}`));
  };
  const label = labelled(program, situation, `${size} ADDs at once`);
  return { ...label, prepare, each: crowdEach };
}

/** What comes after the first ADD, in a netns that stays. */
export function afterAdd(lab: Lab, program: Program, situation: Situation): Case[] {
  const staying = (action: string, jobs: (caller: Caller, netns: string) => readonly Job[]) => {
    const calls = caller(lab, program, situation);
    let netns: string | undefined;
    const prepare = () => {
      if (netns === undefined) {
        netns = lab.netns();
        calls.call("ADD", netns);
      }
      return jobs(calls, netns);
    };
    return { ...labelled(program, situation, action), prepare };
  };
  return [
    staying("ADD again", ({ job }, netns) => [job("ADD", netns, "c")]),
    staying("CHECK", ({ job }, netns) => [job("CHECK", netns, "c")]),
    staying("DEL", ({ job, call }, netns) => {
      call("ADD", netns);
      return [job("DEL", netns, "c")];
    }),
  ];
}

/** What needs no netns to work in. */
export function withoutWork(lab: Lab, program: Program, situation: Situation): Case[] {
  const { job } = caller(lab, program, situation);
  const simple = (action: string, command: string): Case => ({
    ...labelled(program, situation, action),
    ...{ families: "", backend: "", source: "" },
    prepare: () => [job(command, "/run/netns/gone", "c")],
  });
  return [simple("DEL, no record", "DEL"), simple("VERSION", "VERSION")];
}

function labelled(
  { way, isOurs }: Program,
  { families, backend, source }: Situation,
  action: string,
): Omit<Case, "prepare"> {
  const label: Label = { action, families: familiesLabel(families), backend, source, way };
  return { ...label, mayFail: !isOurs, each: 1 };
}

function caller(lab: Lab, program: Program, situation: Situation): Caller {
  const stateDir = lab.stateDir();
  const stdin = `${stateDir}.conf`;
  lab.file(`${stateDir.slice(lab.dir.length + 1)}.conf`, confText({ ...situation, stateDir }));
  const job: Caller["job"] = (command, netns, containerId) => ({
    argv: program.argv,
    env: cniEnv(command, netns, containerId),
    stdin,
    stderr: `${stateDir}.log`,
  });
  return {
    job,
    call: (command, netns) => {
      run([job(command, netns, "c")]);
    },
    forget: () => rmSync(join(stateDir, "attachments"), { recursive: true, force: true }),
  };
}
