// Jumps spelt anew: only from words that we know, and to the letter what iptables-save prints of them.
import { expect, test } from "vitest";
import { respell } from "../../src/netfilter/respell.ts";

const chain = "PROXY_INIT_OUTPUT";
const to = `-j ${chain}`;

const spelt: string[] = [
  `-A OUTPUT ${to}`,
  `-A OUTPUT -g ${chain}`,
  `-A OUTPUT -m comment --comment "sluice/outbound" ${to}`,
  `-A OUTPUT -m comment --comment "proxy-init/install-proxy-init-output/1626275143" ${to}`,
  `-A PREROUTING -m comment --comment linkerd ${to}`,
  `-A OUTPUT -m comment --comment "" ${to}`,
  `-A OUTPUT -p tcp ${to}`,
  `-A OUTPUT ! -s 10.0.0.0/8 -d 1.2.3.4/255.0.255.0 -o eth0.1 ! -p ipv6-icmp ${to}`,
  `-A OUTPUT -d fd00::/64 -o eth+ -p tcp -m tcp ! --dport 80:90 ${to}`,
  `-A OUTPUT -p tcp -m multiport --dports 80,443,8000:8010 -m owner ! --uid-owner 1000-2000 ${to}`,
  `-A OUTPUT -m mark --mark 0x1/0xff -m addrtype --dst-type LOCAL -m conntrack --ctstate NEW,RELATED ${to}`,
];

test.each(spelt)("respell() spells %s", (rule) => {
  expect(respell(rule, chain)).toBe(rule);
});

const refused: string[] = [
  "-A OUTPUT -j ACCEPT",
  `-A OUTPUT ${to} --to-ports 1`,
  `-A OUTPUT --modprobe=/x -V ${to}`,
  `-A OUTPUT -m comment --comment "x" --modprobe=/x ${to}`,
  `-A OUTPUT -m comment --comment "--modprobe=/x" ${to}`,
  `-A OUTPUT -m comment --comment -V ${to}`,
  `-A OUTPUT -m comment --comment "a\\"b" ${to}`,
  `-A OUTPUT -m comment --comment "a\\\\b" ${to}`,
  `-A OUTPUT -m comment --comment "a$(b)" ${to}`,
  `-A OUTPUT -m comment --comment "a\u00a0b" ${to}`,
  `-A OUTPUT -m comment --comment "a\nb" ${to}`,
  `-A OUTPUT -m comment --comment "${"a".repeat(256)}" ${to}`,
  `-A OUTPUT -m string --string "x" --algo bm ${to}`,
  `-A OUTPUT -m recent --set --name x ${to}`,
  `-A OUTPUT -o -x ${to}`,
  `-A OUTPUT -o a/b ${to}`,
  `-A OUTPUT -o abcdefghijklmnop ${to}`,
  `-A OUTPUT -d localhost ${to}`,
  `-A OUTPUT -m owner --uid-owner root ${to}`,
  `-A OUTPUT -m tcp --dport "80" ${to}`,
  `-A OUTPUT -m tcp --dport ${to}`,
  `-A OUTPUT -m tcp --dport 80 81 ${to}`,
  `-A OUTPUT -m mark --mark 1 ${to}`,
  `-A OUTPUT -f ${to}`,
  `-A FOREIGN_CHAIN ${to}`,
  `:OUTPUT ACCEPT [0:0]`,
  "",
];

test.each(refused)("respell() does not spell %j", (rule) => {
  expect(respell(rule, chain)).toBe(undefined);
});
