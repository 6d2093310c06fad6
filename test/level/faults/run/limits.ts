// What a node may be short of, as shell lines: before a call, in the process that becomes the plugin, or between the rules
// and what is written down about them.
import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

export type Limit = {
  readonly name: string;
  /** Before the call; `$state` is the state directory, `$box` a name that no other trial has. */
  readonly setup: string;
  /** Gives back what was taken. */
  readonly heal: string;
  /** The plugin may be killed by it, or not start at all: then there is no answer. */
  readonly mayDie: boolean;
};

const fillUp = `dd if=/dev/zero of="$state/.fill" bs=4k 2>/dev/null || true`;
const useUpNames = `i=0; while touch "$state/.fill$i" 2>/dev/null; do i=$((i + 1)); done`;
const freeUp = `rm -f "$state"/.fill*`;

/** On the state directory's file system. They can also come between the rules and the record. */
export const diskLimits: readonly Limit[] = [
  { name: "a full disk", setup: fillUp, heal: freeUp, mayDie: false },
  { name: "no more files on the disk", setup: useUpNames, heal: freeUp, mayDie: false },
  {
    name: "a disk that is read-only",
    setup: `mount -o remount,ro "$state"`,
    heal: `mount -o remount,rw "$state"`,
    mayDie: false,
  },
];

const record = `"$state/attachments/lab,c1,eth0.json"`;

/** What stands where a file of ours should. */
export const placeLimits: readonly Limit[] = [
  {
    name: "a directory in the record's place",
    setup: `[ -e ${record} ] || mkdir -p ${record}`,
    heal: `[ ! -d ${record} ] || rmdir ${record}`,
    mayDie: false,
  },
  {
    name: "a file in the place of the records' directory",
    setup: `[ -e "$state/attachments" ] || : >"$state/attachments"`,
    heal: `[ -d "$state/attachments" ] || rm -f "$state/attachments"`,
    mayDie: false,
  },
  {
    name: "a directory in the place of backend.json",
    setup: `[ -e "$state/backend.json" ] || mkdir "$state/backend.json"`,
    heal: `[ ! -d "$state/backend.json" ] || rmdir "$state/backend.json"`,
    mayDie: false,
  },
];

const nothing = { heal: "", mayDie: true };

/** On the process itself. */
export const processLimits: readonly Limit[] = [
  { name: "files that may not grow", setup: "ulimit -f 0", heal: "", mayDie: false },
  ...[12, 24, 48].map((files) => ({
    ...nothing,
    name: `${files} open files`,
    setup: `ulimit -n ${files}`,
  })),
  ...[200, 600, 1_200, 2_400].map((mebi) => ({
    ...nothing,
    name: `an address space of ${mebi} MiB`,
    setup: `ulimit -v ${mebi * 1_024}`,
  })),
  { ...nothing, name: "a second of the processor", setup: "ulimit -t 1" },
];

/** The clock was set, by ten years or to its beginning: what was written down is of another time. */
export const clockLimits: readonly Limit[] = [
  ["1970-01-02", "ten years ahead of what was written down"],
  ["2037-01-01", "ten years behind what was written down"],
].map(([date, name]) => ({
  name: `a clock ${name}`,
  setup: `find "$state" -exec touch -d ${date} {} +`,
  heal: "",
  mayDie: false,
}));

type Kind = "pids" | "memory";

const root = "/sys/fs/cgroup";
const fileNames = {
  v1: { pids: "pids.max", memory: "memory.limit_in_bytes" },
  v2: { pids: "pids.max", memory: "memory.max" },
};

/** By a control group for each box; none, where the machine lets us make none. */
export function groupLimits(): readonly Limit[] {
  const pids = [3, 4, 6, 8, 10, 12, 16].map((count) => {
    return groupLimit("pids", count, `${count} processes`);
  });
  const memory = [24, 48, 64, 96].map((mebi) => {
    return groupLimit("memory", mebi * 2 ** 20, `${mebi} MiB of memory`);
  });
  return [...(canMakeGroup("pids") ? pids : []), ...(canMakeGroup("memory") ? memory : [])];
}

// `$box` is the name of the box, which no other has.
function groupLimit(kind: Kind, value: number, name: string): Limit {
  const { parent, file } = placeOf(kind);
  const setup = [
    `group=${parent}/$box`,
    `mkdir -p "$group" && echo ${value} >"$group/${file}" && echo $$ >"$group/cgroup.procs" || exit 1`,
  ];
  return { name, setup: setup.join("\n"), heal: `rmdir "${parent}/$box" || true`, mayDie: true };
}

function placeOf(kind: Kind): { readonly parent: string; readonly file: string } {
  const isV1 = existsSync(join(root, kind));
  return { parent: isV1 ? join(root, kind) : root, file: fileNames[isV1 ? "v1" : "v2"][kind] };
}

function canMakeGroup(kind: Kind): boolean {
  const { parent, file } = placeOf(kind);
  const path = join(parent, `slc-${process.pid}`);
  try {
    mkdirSync(path);
    return existsSync(join(path, file));
  } catch {
    // No rights, or a controller that is not there: the machine decides what can be tried on it.
    return false;
  } finally {
    if (existsSync(path)) rmdirSync(path);
  }
}
