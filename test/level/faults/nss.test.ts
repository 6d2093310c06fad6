// iptables looks up users also for numbers (istio#48416). On this node that takes half a minute: a name service that
// sleeps stands in the place of one that nobody uses. ADD does not notice.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { execaSync } from "execa";
import { describe, expect } from "vitest";
import { backends, families } from "../../../src/netfilter/table.ts";
import { linkerd } from "../../lab/states.ts";
import { addressOf, confOf } from "../netns/level.ts";
import { errorJson, test as level, logLines, type Node, ownMs, requireThat } from "./node.ts";

const source = `#include <grp.h>
#include <nss.h>
#include <pwd.h>
#include <unistd.h>
enum nss_status _nss_hesiod_getpwnam_r(const char *n, struct passwd *p, char *b, size_t l, int *e)
{ sleep(SECONDS); return NSS_STATUS_NOTFOUND; }
enum nss_status _nss_hesiod_getgrnam_r(const char *n, struct group *g, char *b, size_t l, int *e)
{ sleep(SECONDS); return NSS_STATUS_NOTFOUND; }
`;

type Slow = {
  /** Shell lines that make user look-ups slow for whoever comes after. */
  readonly setup: string;
  /** Files that the plugin must hide from its tools. */
  readonly hidden: readonly string[];
};

type Skip = Parameters<typeof requireThat>[2];

const library = "libnss_hesiod.so.2";

/** A node whose users come from files and from a service that takes so many seconds to say no. */
function serviceOn({ tools: { dir } }: Node, seconds: number, skip: Skip): Slow {
  requireThat(existsSync("/usr/bin/gcc"), "a name service is compiled with gcc", skip);
  mkdirSync(join(dir, "nss"));
  const file = (name: string) => join(dir, "nss", name);
  writeFileSync(file("slow.c"), source.replaceAll("SECONDS", String(seconds)));
  execaSync("gcc", ["-shared", "-fPIC", "-o", file("slow.so"), file("slow.c")]);
  writeFileSync(file("conf"), "passwd: files hesiod\ngroup: files hesiod\n");
  const known = execaSync("/sbin/ldconfig", ["-p"]).stdout;
  const place = new RegExp(`${library} .*=> (\\S+)`).exec(known)?.[1] ?? "";
  return {
    setup: `mount --bind ${file("slow.so")} ${place}\nmount --bind ${file("conf")} /etc/nsswitch.conf`,
    hidden: ["/etc/nsswitch.conf"],
  };
}

/** A node with a cache of users that takes questions and never answers. */
function cacheOn({ tools: { dir } }: Node): Slow & { readonly server: Server } {
  mkdirSync(join(dir, "netns"));
  const server = createServer().listen(join(dir, "nscd"));
  const setup = `mount --rbind /run/netns ${dir}/netns
mount -t tmpfs none /run
mkdir /run/netns /run/nscd
mount --rbind ${dir}/netns /run/netns
touch /run/nscd/socket
mount --bind ${dir}/nscd /run/nscd/socket`;
  return { setup, hidden: ["/var/run/nscd/socket", "/etc/nsswitch.conf"], server };
}

const test = level
  .extend("service", ({ node, skip }): Slow => serviceOn(node, 30, skip))
  .extend("cache", ({ node }, { onCleanup }): Slow => {
    const cache = cacheOn(node);
    onCleanup(() => {
      cache.server.close();
    });
    return cache;
  });

const gid = { ...linkerd, "proxy-gid": 2103 };

describe.for(backends)("over %s", (backend) => {
  const conf = confOf({
    linkerd: { ...gid, "iptables-mode": backend },
    addresses: families.map((family) => addressOf[family]),
  });
  const restore = `printf '*nat\\n-A OUTPUT -m owner --uid-owner 2102 -j RETURN\\nCOMMIT\\n' |
timeout 2 iptables-${backend}-restore --noflush || echo kept up`;

  test.concurrent("ADD is quick, and says what it hid, when users come from a service that sleeps", async ({
    node,
    service,
  }) => {
    expect(await node.run(`${service.setup}\n${restore}`)).toBe("kept up");

    const answer = await node.call("ADD", conf, service);

    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    expect(logLines(answer)).toMatchObject([hidFrom(service), { execs: 1, changed: families }]);
    expect(ownMs(answer)).toBeLessThan(3_000);
    expect((await node.call("CHECK", conf, service)).stdout).toBe("");
  });

  test.concurrent("ADD is quick, and says what it hid, when a cache of users does not answer", async ({
    node,
    cache,
  }) => {
    expect(await node.run(`${cache.setup}\n${restore}`)).toBe("kept up");

    const answer = await node.call("ADD", conf, cache);

    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    expect(logLines(answer)).toMatchObject([hidFrom(cache), { execs: 1, changed: families }]);
    expect(ownMs(answer)).toBeLessThan(3_000);
  });
});

test.concurrent("ADD says nothing of users when they come from the node itself", async ({
  node,
}) => {
  writeFileSync(join(node.tools.dir, "conf"), "passwd: files systemd\ngroup: files systemd\n");
  const setup = `mount --bind ${node.tools.dir}/conf /etc/nsswitch.conf`;

  const answer = await node.call("ADD", confOf({ linkerd: gid }), { setup });

  expect(logLines(answer).filter((line) => "nss" in line)).toStrictEqual([]);
});

/** What keeps a process from a mount namespace of its own, or from mounting in it (SELinux: istio#48746). */
const refusals: readonly { name: string; program: string }[] = [
  { name: "a mount namespace is refused", program: "unshare" },
  { name: "mounts are refused", program: "mount" },
];

test.concurrent.for(refusals)(
  "ADD looks users up, says so and succeeds when $name",
  async ({ program }, { node, skip }) => {
    const { setup } = serviceOn(node, 0, skip);
    const conf = confOf({ linkerd: { ...gid, "iptables-mode": "nft" } });

    const answer = await node.call("ADD", conf, { setup: `${setup}\n${refuse(node, program)}` });

    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    const msg = "could not be hidden from the tools, which may ask the network";
    expect(logLines(answer)).toMatchObject([
      { level: "warn", nss: ["/etc/nsswitch.conf"], msg },
      { execs: 2, changed: ["ipv4"] },
    ]);
  },
);

test.concurrent("ADD keeps its deadline when users are looked up slowly all the same", async ({
  node,
  service,
}) => {
  const conf = confOf({ linkerd: { ...gid, "iptables-mode": "nft" } });
  const short = { ...conf, sluice: { "timeout-seconds": 2 } };

  const answer = await node.call("ADD", short, {
    setup: `${service.setup}\n${refuse(node, "unshare")}`,
  });

  const late =
    "could not work in the netns of container c1: /usr/sbin/iptables-nft-restore (nft, ipv4, table nat) did not end within the deadline; run it by hand to see what it waits for";
  const halfway = "nothing of ours is left half-way; a family's rules are loaded all or not at all";
  expect(answer).toMatchObject({ exitCode: 1, stdout: errorJson(11, late, halfway) });
  expect(answer.durationMs).toBeLessThan(4_000);
});

function hidFrom({ hidden }: Slow) {
  return { level: "info", nss: hidden, msg: "hidden from the tools, which would ask the network" };
}

function refuse({ tools: { dir } }: Node, program: string): string {
  const script = `#!/bin/sh\necho "${program}: Permission denied" >&2\nexit 1\n`;
  writeFileSync(join(dir, program), script, { mode: 0o755 });
  return `mount --bind ${dir}/${program} /usr/bin/${program}`;
}
