// The node's iptables programs as a fake of Exec: takes the argv that netfilter/iptables/client.ts makes, and keeps a nat table for
// each place (a netns' handle, `host`, `scratch`), backend and family. What the programs do is nat.ts'.
import { basename } from "node:path";
import { type JobWords, readArguments } from "../../src/netfilter/iptables/layout.ts";
import type { Exec } from "../../src/netns/exec.ts";
import { emptyNat, type Nat, printNat, restoreNat, type Tool } from "./nat.ts";

/** `iptables-nft`, `iptables-legacy`, `ip6tables-nft` or `ip6tables-legacy`. */
export type ToolName = `${"iptables" | "ip6tables"}-${"nft" | "legacy"}`;

/** What becomes of the next run of a program: something happens just before it, or it fails. */
export type Event = {
  readonly program: `${ToolName}-${"restore" | "save"}`;
  readonly meanwhile?: () => void;
  readonly fails?: Partial<Ran>;
};

/** A restore that changed a table. */
export type Written = { readonly place: string; readonly tool: ToolName; readonly text: string };

export type FakeIptables = {
  readonly exec: Exec;
  /** Brings a table into the state that a text describes ("": there is none); throws when it describes none. */
  readonly load: (place: string, tool: ToolName, text: string) => void;
  /** What save prints; "" where legacy has no table. */
  readonly save: (place: string, tool: ToolName) => string;
  /** All restores so far that changed a table. */
  readonly written: Written[];
  /** Taken in turn, one by each run of the program that they name. */
  readonly events: Event[];
  /** Own chains of the table mangle, by place and tool: `host iptables-nft`. */
  readonly mangle: Map<string, readonly string[]>;
  /** The lines that a look at a netns' families prints (src/netfilter/iptables/presence.ts); of those that are looked at. */
  readonly presence: string[];
};

type Ran = { readonly status: number; readonly stdout: string; readonly stderr: string };

const nothing: Ran = { status: 0, stdout: "", stderr: "" };
const warning = "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them";

export function makeFakeIptables(): FakeIptables {
  const tables = new Map<string, Nat>();
  const fake: Omit<FakeIptables, "exec"> = {
    written: [],
    events: [],
    mangle: new Map(),
    presence: [],
    load: (place, tool, text) => {
      const { nat, status, stderr } = restoreNat(emptyNat, text, partsOf(tool));
      if (status !== 0) throw new Error(stderr);
      if (text === "") tables.delete(`${place} ${tool}`);
      else tables.set(`${place} ${tool}`, nat);
    },
    save: (place, tool) => {
      const isThere = tool.endsWith("-nft") || tables.has(`${place} ${tool}`);
      return isThere ? printNat(natOf(place, tool), partsOf(tool)) : "";
    },
  };

  function natOf(place: string, tool: ToolName): Nat {
    return tables.get(`${place} ${tool}`) ?? emptyNat;
  }

  function restore(place: string, tool: ToolName, text: string): Ran {
    const before = natOf(place, tool);
    const { nat, status, stderr } = restoreNat(before, text, partsOf(tool));
    // Also when it was refused: legacy has made the table then.
    tables.set(`${place} ${tool}`, nat);
    const [old, now] = [before, nat].map((table) => printNat(table, partsOf(tool)));
    if (old !== now) fake.written.push({ place, tool, text });
    return { status, stderr, stdout: "" };
  }

  // nft's save is told the table; legacy's prints all there are.
  function save(place: string, tool: ToolName, table: string): Ran {
    const hints = fake.mangle.get(`${place} ${tool}`) ?? [];
    const lines = ["*mangle", ":OUTPUT ACCEPT [0:0]", ...hints.map((name) => `:${name} - [0:0]`)];
    const mangle = table !== "nat" && hints.length > 0 ? `${lines.join("\n")}\nCOMMIT\n` : "";
    const nat = table === "mangle" ? "" : fake.save(place, tool);
    const legacyToo = tables.has(`${place} ${tool.replace("-nft", "-legacy")}`);
    const stderr = tool.endsWith("-nft") && legacyToo ? warning : "";
    return { status: 0, stdout: mangle + nat, stderr };
  }

  function run(program: string, work: (tool: ToolName) => Ran): Ran {
    const name = basename(program);
    const at = fake.events.findIndex((event) => event.program === name);
    const event = at === -1 ? undefined : fake.events.splice(at, 1)[0];
    event?.meanwhile?.();
    return event?.fails === undefined ? work(toolOf(name)) : { ...nothing, ...event.fails };
  }

  function runJob(place: string, job: JobWords): [restored: Ran, saved: Ran] {
    const restored =
      job.restore === ""
        ? nothing
        : run(job.restore, (tool) => restore(place, tool, `${job.text}\n`));
    const key = `${place} ${toolOf(basename(job.save))}`;
    const isAbsent = job.guard.startsWith("/") && !tables.has(key) && !fake.mangle.has(key);
    return [restored, isAbsent ? nothing : run(job.save, (tool) => save(place, tool, job.table))];
  }

  const exec: Exec = ({ argv, outputs }) => {
    const place = placeOf(argv);
    const found = new Array<string>(outputs).fill("");
    const looked = ["ipv4", "ipv6"].filter((family) => {
      return argv.some((word) => word.includes(`look_${family}()`));
    });
    const seen = fake.presence.filter((line) => looked.some((family) => line.startsWith(family)));
    found[0] = seen.map((line) => `${line}\n`).join("");
    for (const [i, job] of readArguments(argv).jobs.entries()) {
      if (job.guard === "possible" && !seen.includes("ipv6 possible")) {
        found[0] += `${i} absent\n`;
        continue;
      }
      const [restored, saved] = runJob(place, job);
      if (job.restore !== "") found[0] += `${i} ${restored.status}\n`;
      found[0] += `${i} ${restored.status} ${saved.status}\n`;
      found[Number(job.descriptor) - 1] = `${restored.stderr}\n${saved.stderr}\n`;
      found[Number(job.descriptor)] = saved.stdout;
    }
    const scratch = [...tables.keys()].filter((key) => key.startsWith("scratch "));
    for (const key of scratch) tables.delete(key);
    return Promise.resolve({ exitCode: 0, timedOut: false, startError: "", outputs: found });
  };
  return { ...fake, exec };
}

function placeOf(argv: readonly string[]): string {
  const entering = argv.find((word) => word.startsWith("--net="));
  if (entering !== undefined) return entering.slice("--net=".length);
  return argv.includes("--net") ? "scratch" : "host";
}

function partsOf(tool: ToolName): Tool {
  const family = tool.startsWith("ip6") ? "ipv6" : "ipv4";
  return { family, backend: tool.endsWith("-nft") ? "nft" : "legacy" };
}

const toolNames: readonly ToolName[] = [
  "iptables-nft",
  "iptables-legacy",
  "ip6tables-nft",
  "ip6tables-legacy",
];

function toolOf(program: string): ToolName {
  const tool = toolNames.find(
    (name) => program === `${name}-restore` || program === `${name}-save`,
  );
  if (tool === undefined) throw new Error(`the fake has no program ${program}`);
  return tool;
}
