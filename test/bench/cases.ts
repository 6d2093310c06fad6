// All cases of a benchmark run, and the order in which they are shown.
import { type Backend, backends, type Family } from "../../src/netfilter/table.ts";
import { bareNode, bareRestore, bareSave, initContainer, initCrowd } from "./bare-cases.ts";
import type { Case } from "./case.ts";
import type { Lab } from "./lab.ts";
import type { Options } from "./options.ts";
import { addCrowd, addFresh, afterAdd, type Program, withoutWork } from "./plugin-cases.ts";
import type { Where } from "./shell.ts";

export type Plan = {
  readonly options: Options;
  readonly node: string;
  readonly programs: readonly Program[];
  readonly kubeconfig: string;
};

/** The cases, by action. */
export function allCases(lab: Lab, plan: Plan): Case[] {
  const { options, node, programs } = plan;
  const shown: readonly Backend[] = options.quick ? ["nft"] : backends;
  const wheres = shown.flatMap((backend): Where[] =>
    (["ipv4", "dual"] as const).map((label) => ({ backend, families: familiesOf[label] })),
  );
  const dual: Where = { backend: "nft", families: familiesOf.dual };
  const crowd = { ...dual, size: options.crowd };
  return [
    bareNode(node),
    ...wheres.map((where) => bareRestore(lab, where)),
    ...wheres.map((where) => bareSave(lab, where)),
    ...wheres.flatMap((where) => [
      initContainer(lab, where),
      ...programs.flatMap((program) => adds(lab, plan, { program, where })),
    ]),
    ...programs.flatMap((program) => {
      const { kubeconfig } = plan;
      const source = usualSource(program);
      return [
        ...wheres.flatMap((where) => afterAdd(lab, program, { ...where, source, kubeconfig })),
        ...withoutWork(lab, program, { ...dual, source, kubeconfig }),
        addCrowd(lab, program, { ...crowd, source, kubeconfig }),
      ];
    }),
    initCrowd(lab, crowd),
  ];
}

const familiesOf = {
  ipv4: ["ipv4"],
  dual: ["ipv4", "ipv6"],
} as const satisfies Record<string, readonly Family[]>;

type Add = { readonly program: Program; readonly where: Where };

function adds(lab: Lab, { kubeconfig }: Plan, { program, where }: Add): Case[] {
  return (["annotations", "api"] as const).map((source) =>
    addFresh(lab, program, { ...where, source, kubeconfig }),
  );
}

// Ours take the pod's annotations from the runtime where they can; others know the API only.
function usualSource({ isOurs }: Program): "annotations" | "api" {
  return isOurs ? "annotations" : "api";
}
