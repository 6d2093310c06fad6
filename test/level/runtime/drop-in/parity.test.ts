// Every row of parity, by the executable itself: rules in the pod's netns, answer, warnings, and what the API was asked.
import { expect } from "vitest";
import { objectsFor } from "../../../lab/api-objects.ts";
import {
  type Answer,
  type Attachment,
  confFor,
  doneLine,
  lookInto,
  test,
  warningsOf,
} from "./level.ts";
import type { Gives, Rules } from "./row.ts";
import { rows } from "./rows.ts";

test.concurrent.for(rows)("ADD on $key: $when", async (row, { api, pod }) => {
  api.objects = objectsFor(row.pod, row.namespace);
  const conf = confFor(pod, row);

  const answer = await pod.call("ADD", conf, row.args === undefined ? {} : { CNI_ARGS: row.args });

  expect({ ...cameOf(pod, answer), requests: api.requests.length }).toEqual(
    outcomeOf(row.gives, conf.prevResult),
  );
});

/** Everything that an ADD did, as far as rows speak of it. */
function cameOf(pod: Attachment, answer: Answer) {
  const answered: unknown = JSON.parse(answer.stdout);
  const { rules, untouched } = lookInto(pod);
  return {
    exitCode: answer.exitCode,
    answered,
    ...rules,
    // Of a pod that is left alone not even the table is made.
    untouched,
    records: pod.records(),
    skipped: doneLine(answer)?.["skipped"],
    warns: warningsOf(answer),
  };
}

function outcomeOf(gives: Gives, prevResult: object) {
  const { rules = {}, ipv6, skipped, error, warns = [], requests = 2 } = gives;
  const untouched = skipped !== undefined || error !== undefined;
  return {
    exitCode: error === undefined ? 0 : 1,
    answered: error === undefined ? prevResult : errorOf(error),
    ipv4: untouched ? [] : linesFor(rules),
    ipv6: ipv6 === undefined || untouched ? [] : linesFor(ipv6),
    untouched,
    records: untouched ? [] : ["linkerd-cni,c1,eth0.json"],
    skipped,
    warns,
    requests,
  };
}

function errorOf([code, msg, details]: NonNullable<Gives["error"]>) {
  return { cniVersion: "1.1.0", code, msg, details };
}

/** The rules in iptables-save's order and spelling, without comments. */
function linesFor(rules: Rules): string[] {
  const { uid = 2102, gid, inPort = 4143, outPort = 4140, only = [] } = rules;
  const { in: inbound = ["4190,4191"], out: outbound = [], from = [] } = rules;
  const [output, redirect] = ["-A PROXY_INIT_OUTPUT", "-A PROXY_INIT_REDIRECT"];
  const skip = (chain: string) => (ports: string) =>
    `${chain} -p tcp -m multiport --dports ${ports} -j RETURN`;
  const source = (subnet: string) => (subnet.endsWith("/0") ? "" : ` -s ${subnet}`);
  return [
    "-A PREROUTING -j PROXY_INIT_REDIRECT",
    "-A OUTPUT -j PROXY_INIT_OUTPUT",
    `${output} -m owner --uid-owner ${uid} -j RETURN`,
    ...(gid === undefined ? [] : [`${output} -m owner --gid-owner ${gid} -j RETURN`]),
    `${output} -o lo -j RETURN`,
    ...outbound.map(skip(output)),
    `${output} -p tcp -j REDIRECT --to-ports ${outPort}`,
    ...inbound.map(skip(redirect)),
    ...from.map((subnet) => `${redirect}${source(subnet)} -j RETURN`),
    ...(only.length > 0
      ? only.map(
          (port) => `${redirect} -p tcp -m tcp --dport ${port} -j REDIRECT --to-ports ${inPort}`,
        )
      : [`${redirect} -p tcp -j REDIRECT --to-ports ${inPort}`]),
  ];
}
