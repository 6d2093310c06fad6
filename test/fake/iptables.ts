// The node's iptables programs and the nat tables behind them, as a fake of Exec: takes the argv that netfilter/client.ts
// makes and answers as iptables 1.8.9 does. test/netns/fake.test.ts holds it against the real programs.
import { basename } from "node:path";
import type { Exec, ExecResult } from "../../src/netns/exec.ts";

/** A program that fails, or something that another program does just before it runs. In turn, one a run. */
export type Event = {
  readonly program: string;
  readonly meanwhile?: () => void;
  readonly fails?: { readonly status: number; readonly stderr: string; readonly stdout?: string };
};

/** `iptables-nft`, `iptables-legacy`, `ip6tables-nft` or `ip6tables-legacy`. */
export type ToolName = string;

/** Restore texts that were loaded, one a COMMIT that changed something. */
export type Written = { readonly place: string; readonly tool: ToolName; readonly text: string };

export type FakeIptables = {
  readonly exec: Exec;
  /** Loads a text as the tool's restore would with --noflush; throws when it is refused. */
  readonly load: (place: string, tool: ToolName, text: string) => void;
  /** What the tool's save prints. */
  readonly save: (place: string, tool: ToolName) => string;
  readonly written: readonly Written[];
  readonly events: Event[];
  /** Own chains of mangle by place and tool (`host iptables-nft`): for hints. */
  readonly mangle: Map<string, readonly string[]>;
};

type Chain = { policy: string; rules: string[] };
type Nat = ReadonlyMap<string, Chain>;
type Refusal = { readonly status: number; readonly stderr: string };
type Restored = { readonly nat: Nat; readonly refusal?: Refusal };

const builtins = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"];
const emptyNat: Nat = new Map(builtins.map((name) => [name, { policy: "ACCEPT", rules: [] }]));
const targets = ["ACCEPT", "DROP", "RETURN", "REDIRECT", "DNAT", "MASQUERADE", "LOG", "MARK"];

export function makeFakeIptables(): FakeIptables {
  const tables = new Map<string, Nat>();
  const mangle = new Map<string, readonly string[]>();
  const written: Written[] = [];
  const events: Event[] = [];
  const restore = (place: string, tool: ToolName, text: string): Refusal | undefined => {
    const key = `${place} ${tool}`;
    const { nat, refusal } = restoreNat(tables.get(key) ?? emptyNat, text, tool);
    const changed = printNat(nat) !== printNat(tables.get(key) ?? emptyNat);
    // Also when it refuses: the table is there then. Only nft makes it with the first rule.
    tables.set(key, nat);
    if (changed) written.push({ place, tool, text });
    return refusal;
  };
  const save = (place: string, tool: ToolName) => {
    const nat = tables.get(`${place} ${tool}`);
    const shown = nat ?? (tool.endsWith("-nft") ? emptyNat : undefined);
    return shown === undefined ? "" : framed(tool, printNat(shown));
  };
  const run = (job: Job): { status: number; stdout: string; stderr: string } => {
    const { place, program, text, table } = job;
    const [, tool = "", verb] = /^(ip6?tables-(?:nft|legacy))-(restore|save)$/.exec(program) ?? [];
    const at = events.findIndex((event) => event.program === program);
    const [event] = at === -1 ? [] : events.splice(at, 1);
    event?.meanwhile?.();
    if (event?.fails !== undefined) return { stdout: "", ...event.fails };
    if (verb === "restore") return { stdout: "", ...(restore(place, tool, text) ?? succeeded) };
    if (verb !== "save") throw new Error(`the fake has no program ${program}`);
    const hints = mangle.get(`${place} ${tool}`) ?? [];
    const nat = table === "mangle" ? "" : save(place, tool);
    const other = table === "nat" ? "" : hints.map((chain) => `:${chain} - [0:0]\n`).join("");
    const stdout = other === "" ? nat : `${nat}*mangle\n:OUTPUT ACCEPT [0:0]\n${other}COMMIT\n`;
    const legacyToo = tables.has(`${place} ${tool.replace("-nft", "-legacy")}`);
    return { status: 0, stdout, stderr: tool.endsWith("-nft") && legacyToo ? legacyWarning : "" };
  };
  return {
    written,
    events,
    mangle,
    save,
    load: (place, tool, text) => {
      const refusal = restore(place, tool, text);
      written.length = 0;
      if (refusal !== undefined) throw new Error(refusal.stderr);
    },
    exec: async ({ argv, outputs }) => {
      const place = placeOf(argv);
      const found = Array.from({ length: outputs }, () => "");
      for (const [i, job] of jobsOf(argv).entries()) {
        const { fd, restore: restoreProgram, save: saveProgram, table, names, text } = job;
        const idle = succeeded;
        const loaded =
          restoreProgram === "" ? idle : run({ place, program: restoreProgram, text, table });
        const legacyAbsent = names !== "" && !tables.has(`${place} ${toolOf(saveProgram)}`);
        const saved = legacyAbsent
          ? { ...succeeded, stdout: "" }
          : run({ place, program: saveProgram, text: "", table });
        found[0] += `${i} ${loaded.status} ${saved.status}\n`;
        found[fd - 1] = [loaded.stderr, saved.stderr].filter((said) => said !== "").join("\n");
        found[fd] = saved.stdout;
      }
      if (place === "scratch") for (const key of tables.keys()) forget(tables, key);
      return { exitCode: 0, timedOut: false, startError: "", outputs: found };
    },
  };
}
