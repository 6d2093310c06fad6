// Kubeconfigs for the API stub, in the forms in which they are met.
import type { ApiStub } from "./api-stub.ts";

type Access = Pick<ApiStub, "url" | "token"> & {
  readonly authority: Pick<ApiStub["authority"], "ca">;
};

/** As linkerd's installer writes it, letter by letter. */
export function linkerdKubeconfig({ url, authority, token }: Access): string {
  return `# Kubeconfig file for linkerd CNI plugin.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: ${url}
    certificate-authority-data: ${base64(authority.ca)}
users:
- name: linkerd-cni
  user:
    token: ${token}
contexts:
- name: linkerd-cni-context
  context:
    cluster: local
    user: linkerd-cni
current-context: linkerd-cni-context
`;
}

/** Keys of one cluster and one user. */
export type Parts = { readonly cluster?: object; readonly user?: object; readonly more?: object };

/** As an object, for one cluster and one user, whose keys are put over those of a good one. */
export function kubeconfigObject({ url, authority, token }: Access, parts: Parts = {}): object {
  const cluster = {
    server: url,
    "certificate-authority-data": base64(authority.ca),
    ...parts.cluster,
  };
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: parts.user ?? { token } }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
    ...parts.more,
  };
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
