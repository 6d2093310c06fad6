// How far each family is there in a netns: addresses and routes beyond link-local, and whether IPv6 may come at all.
// Pure: the lines by which the one child of a batch (client.ts) finds it out, and what is read from its answer.
import type { Family } from "../table.ts";

/** What a netns has, of the families that were looked at. */
export type Presence = {
  /** By family, what shows that it is spoken beyond the link, in words; "" where nothing does. */
  readonly evidence: ReadonlyMap<Family, string>;
  /** IPv6 is there, or an interface other than lo has it not disabled: it is spoken on the link, and more may come. */
  readonly ipv6Possible: boolean;
};

/** True when the family must be redirected: it is spoken beyond the link, or it was not looked whether it is. */
export function isSpoken(presence: Presence | undefined, family: Family): boolean {
  return presence?.evidence.get(family) !== "";
}

// A pod's author may have thousands of each; what is not looked at to its end counts as spoken.
const linesMax = 1_000;

// Nothing but what a shell has in itself: a process more would cost as much as all of this. Each family's lines end with the
// first that shows it. In fib_trie (all of IPv4's tables) a line with the address stands ahead of those that say what it is.
// In ipv6_route a 2 in the flags' third digit from the right is RTF_REJECT: nothing goes that way.
const looks: Readonly<Record<Family, string>> = {
  ipv4: `
look_ipv4() {
  [ -r /proc/self/net/fib_trie ] || { echo 'ipv4 unreadable'; return; }
  lines=0
  while read -r mark text type rest; do
    lines=$((lines + 1))
    if [ "$lines" -gt ${linesMax} ]; then echo 'ipv4 more'; return; fi
    case $mark in
      '|--') at=$text ;;
      /*)
        case $type:$at in
          *:127.*|*:169.254.*|*:22[4-9].*|*:23[0-9].*) ;;
          LOCAL:*) echo "ipv4 address $at"; return ;;
          UNICAST:*) echo "ipv4 route $at$mark"; return ;;
        esac ;;
    esac
  done </proc/self/net/fib_trie
  echo 'ipv4 none'
}
look_ipv4`,
  ipv6: `
tell_ipv6() { echo "ipv6 $1"; possible=yes; }
look_ipv6() {
  [ -r /proc/self/net/dev ] || { tell_ipv6 unreadable; return; }
  [ -r /proc/self/net/if_inet6 ] || { echo 'ipv6 none'; return; }
  lines=0
  while read -r at index length scope rest; do
    lines=$((lines + 1))
    if [ "$lines" -gt ${linesMax} ]; then tell_ipv6 more; return; fi
    case $scope in
      10|20) ;;
      *) tell_ipv6 "address $at"; return ;;
    esac
  done </proc/self/net/if_inet6
  lines=0
  while read -r at length source bits hop metric refs use flags rest; do
    lines=$((lines + 1))
    if [ "$lines" -gt ${linesMax} ]; then tell_ipv6 more; return; fi
    case $flags:$at in
      *[2367abef]??:*|*:fe[89ab]*|*:ff*|*:00000000000000000000000000000001) ;;
      *) tell_ipv6 "route $at/$length"; return ;;
    esac
  done </proc/self/net/ipv6_route
  echo 'ipv6 none'
}
look_settings() {
  count=0
  for setting in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
    case $setting in */conf/all/*|*/conf/default/*|*/conf/lo/*) continue ;; esac
    count=$((count + 1))
    if [ "$count" -gt ${linesMax} ]; then possible=yes; return; fi
    disabled=1
    read -r disabled 2>/dev/null <"$setting"
    if [ "$disabled" = 0 ]; then possible=yes; return; fi
  done
}
possible=
look_ipv6
[ -n "$possible" ] || look_settings
[ -z "$possible" ] || echo 'ipv6 possible'`,
};

/**
 * Shell lines that look at these families in the netns they are run in, and print a line each. They leave `$possible`
 * behind: "yes" where IPv6 is possible, "" where it is not, or was not looked at.
 */
export function presenceScript(looked: readonly Family[]): string {
  return looked.map((family) => `${looks[family]}\n`).join("");
}

/**
 * Reads what these lines printed, among others. A family that is not in it was not looked at: the look was cut short.
 */
export function parsePresence(lines: string): Presence {
  const found = lines.matchAll(
    /^(ipv4|ipv6) (none|more|unreadable|address|route)(?: ([\w.:/]+))?$/gm,
  );
  const evidence = [...found].map(([, family, kind = "", what = ""]) => {
    return [family === "ipv4" ? "ipv4" : "ipv6", inWords(kind, what)] as const;
  });
  return { evidence: new Map(evidence), ipv6Possible: /^ipv6 possible$/m.test(lines) };
}

function inWords(kind: string, what: string): string {
  switch (kind) {
    case "none":
      return "";
    case "more":
      return `more than ${linesMax} addresses and routes`;
    case "unreadable":
      return "a /proc that does not show addresses";
    default:
      return `${kind} ${what.replace(/^([0-9a-f]{32})(?:\/(..))?$/, ipv6Text)}`;
  }
}

// fd000009000000000000000000000002, and a prefix' length in hex as well: as people write them.
function ipv6Text(_: string, digits: string, length?: string): string {
  const groups = (digits.match(/..../g) ?? []).map((group) => group.replace(/^0{1,3}/, ""));
  const address = groups.join(":").replace(/(^|:)0(:0)+(:|$)/, "::");
  return length === undefined ? address : `${address}/${Number.parseInt(length, 16)}`;
}
