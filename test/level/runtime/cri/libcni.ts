// What a runtime's CNI library does with a conf list, in the few lines that a test needs: CRI-O cannot be had here, and how
// it calls is what matters. It runs the real plugins in a box and keeps each ADD as the library's cache does.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Box } from "./box.ts";
import type { Chain } from "./chain.ts";

/** One attachment, as the runtime names it. */
export type Attachment = {
  readonly containerId: string;
  readonly netns: string;
  readonly args: string;
  /** Values for the capabilities that plugins of the list may have. */
  readonly capabilities: Readonly<Record<string, unknown>>;
};

/** What a verb came to: the answer of the last plugin, or of the first that failed. */
export type Answer = { readonly ok: boolean; readonly plugin: string; readonly stdout: string };

export type Libcni = {
  /** Whether each plugin speaks the list's version. */
  readonly validate: () => Promise<Answer>;
  readonly add: (attachment: Attachment) => Promise<Answer>;
  readonly check: (attachment: Attachment) => Promise<Answer>;
  /** With the conf list, and all else, that ADD was called with; without netns for a pod that is gone. */
  readonly del: (containerId: string, netns: string) => Promise<Answer>;
  readonly status: () => Promise<Answer>;
  /** DEL of what is cached and not valid, and then GC. */
  readonly gc: (valid: readonly string[]) => Promise<Answer>;
  /** Where the attachment is cached. */
  readonly cacheFile: (containerId: string) => string;
};

type Cached = { readonly chain: Chain; readonly attachment: Attachment; readonly result: unknown };

type Call = {
  readonly verb: string;
  readonly chain: Chain;
  readonly attachment: Attachment;
  readonly prevResult?: unknown;
  readonly more?: object;
};

const ifName = "eth0";
const none: Attachment = { containerId: "", netns: "", args: "", capabilities: {} };

/** The library, for one list: later lists are others' libraries with the same cache. */
export function openLibcni(box: Box, binDir: string, chain: Chain): Libcni {
  const cache = join(box.dir, "cache");
  mkdirSync(cache, { recursive: true });
  const cacheFile = (id: string) => join(cache, `${id}.json`);
  const cached = (id: string): Cached | undefined =>
    existsSync(cacheFile(id)) ? JSON.parse(readFileSync(cacheFile(id), "utf8")) : undefined;
  const call = callerOf(box, binDir);
  const del = async (containerId: string, netns: string) => {
    const entry = cached(containerId) ?? { chain, attachment: none, result: undefined };
    const attachment = { ...entry.attachment, containerId, netns };
    const answer = await inTurn(entry.chain.plugins.toReversed(), (plugin) =>
      call(plugin, { verb: "DEL", chain: entry.chain, attachment, prevResult: entry.result }),
    );
    if (answer.ok) rmSync(cacheFile(containerId), { force: true });
    return answer;
  };
  return {
    cacheFile,
    del,
    validate: () => inTurn(chain.plugins, (plugin) => validate(call, plugin, chain)),
    add: async (attachment) => {
      let result: unknown;
      const answer = await inTurn(chain.plugins, async (plugin) => {
        const added = await call(plugin, { verb: "ADD", chain, attachment, prevResult: result });
        if (added.ok) result = JSON.parse(added.stdout);
        return added;
      });
      const entry: Cached = { chain, attachment, result };
      if (answer.ok) writeFileSync(cacheFile(attachment.containerId), JSON.stringify(entry));
      return answer;
    },
    check: (attachment) => {
      const prevResult = cached(attachment.containerId)?.result;
      return inTurn(chain.plugins, (plugin) =>
        call(plugin, { verb: "CHECK", chain, attachment, prevResult }),
      );
    },
    status: () =>
      inTurn(chain.plugins, (plugin) => call(plugin, { verb: "STATUS", chain, attachment: none })),
    gc: async (valid) => {
      const ids = readdirSync(cache).map((name) => name.replace(/\.json$/, ""));
      for (const id of ids.filter((known) => !valid.includes(known))) {
        await del(id, cached(id)?.attachment.netns ?? "");
      }
      const list = valid.map((containerID) => ({ containerID, ifname: ifName }));
      const more = { "cni.dev/valid-attachments": list, "cni.dev/attachments": list };
      return await inTurn(chain.plugins, (plugin) =>
        call(plugin, { verb: "GC", chain, attachment: none, more }),
      );
    },
  };
}

type Plugin = Chain["plugins"][number];
type Caller = (plugin: Plugin, call: Call) => Promise<Answer>;

async function validate(call: Caller, plugin: Plugin, chain: Chain): Promise<Answer> {
  // As the library fills it in: the interface is the dummy that the netns is.
  const dummy = { ...none, netns: "dummy" };
  const answer = await call(plugin, { verb: "VERSION", chain, attachment: dummy });
  const { supportedVersions }: { supportedVersions: string[] } = JSON.parse(answer.stdout);
  return { ...answer, ok: answer.ok && supportedVersions.includes(chain.cniVersion) };
}

async function inTurn(
  plugins: readonly Plugin[],
  each: (plugin: Plugin) => Promise<Answer>,
): Promise<Answer> {
  let answer: Answer = { ok: true, plugin: "", stdout: "" };
  for (const plugin of plugins) {
    answer = await each(plugin);
    if (!answer.ok) break;
  }
  return answer;
}

function callerOf(box: Box, binDir: string): Caller {
  return async (plugin, { verb, chain, attachment, prevResult, more = {} }) => {
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: attachment.containerId,
      CNI_NETNS: attachment.netns,
      CNI_IFNAME: attachment.containerId === "" ? attachment.netns : ifName,
      CNI_ARGS: attachment.args,
      CNI_PATH: binDir,
    };
    const conf = {
      ...plugin,
      name: chain.name,
      cniVersion: chain.cniVersion,
      ...runtimeConfig(plugin, attachment),
      ...(prevResult === undefined ? {} : { prevResult }),
      ...more,
    };
    const input = JSON.stringify(verb === "VERSION" ? { cniVersion: "1.1.0" } : conf);
    const { exitCode, stdout } = await box.run([join(binDir, plugin.type)], { env, input });
    return { ok: exitCode === 0, plugin: plugin.type, stdout };
  };
}

// Only what the plugin's entry has enabled, and the runtime has a value for.
function runtimeConfig(plugin: Plugin, { capabilities }: Attachment): object {
  const enabled = Object.keys(plugin["capabilities"] ?? {});
  const values = Object.entries(capabilities).filter(([name]) => enabled.includes(name));
  return values.length === 0 ? {} : { runtimeConfig: Object.fromEntries(values) };
}
