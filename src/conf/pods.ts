// From the words of the conf to how pods are known and what they may say.
import type { ConfList } from "../redirect/conf-list.ts";
import { mergePorts, type PortRange } from "../redirect/port.ts";
import type { SluiceConf } from "./schema.ts";
import type { PodSettings } from "./settings.ts";

/** The parts of the conf that are about pods. */
export type PodConf = {
  readonly sluice: SluiceConf;
  readonly kubernetes: PodSettings["kubernetes"];
  readonly apiServerPorts: ConfList<PortRange>;
};

/** The settings that are about pods. */
export function podSettings({ sluice, kubernetes, apiServerPorts }: PodConf): PodSettings {
  const agent = sluice["agent-pod"];
  return {
    source: sluice["pod-source"],
    kubernetes,
    excludedNamespaces: sluice["exclude-namespaces"],
    agent: agent && { namespace: agent.namespace, namePrefix: agent["name-prefix"] },
    controlPlaneNamespaces: [sluice["control-plane-namespace"]].flat(),
    apiServerPorts: mergePorts(apiServerPorts.values),
    denials: sluice["deny-annotations"],
    onInvalid: sluice["on-invalid-annotation"],
    problems: apiServerPorts.problems,
  };
}
