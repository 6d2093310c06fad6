// Which pods are of Linkerd's own control plane, and so reach the API server without their proxy.
import type { Annotations, KnownPod } from "../pod.ts";
import type { ControlPlane } from "../profile.ts";
import { controlPlaneLabel, createdByAnnotation, injectAnnotation } from "./names.ts";

/**
 * By its label where the spec is known. The runtime hands over no labels: then by its namespace, in which there are other
 * pods too, those that the injector gave their proxy.
 */
export function controlPlane({ annotations, spec }: KnownPod, isListed: boolean): ControlPlane {
  if (spec !== undefined) {
    return { isControlPlane: (spec.labels[controlPlaneLabel] ?? "") !== "" };
  }
  const origin = originOf(annotations);
  if (isListed) return { isControlPlane: origin !== "injected" };
  return { isControlPlane: false, ...(origin === "installed" ? { warning: unlistedWarning } : {}) };
}

const unlistedWarning =
  "made by Linkerd's chart or command line, in a namespace that sluice.control-plane-namespace does not name: if it is the control plane, it cannot reach the API server";

/**
 * What annotations alone tell of a pod that may be Linkerd's control plane: "injected" where they say that it was given its
 * proxy like any other, "installed" where a chart or the command line made it, else "unknown".
 */
function originOf(annotations: Annotations): "injected" | "installed" | "unknown" {
  const createdBy = annotations[createdByAnnotation] ?? "";
  const inject = annotations[injectAnnotation] ?? "";
  if (createdBy.startsWith("linkerd/proxy-injector")) return "injected";
  if (inject === "enabled" || inject === "ingress") return "injected";
  return /^linkerd\/(helm|cli)( |$)/.test(createdBy) ? "installed" : "unknown";
}
