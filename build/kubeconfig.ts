// The kubeconfig of the build's own ADDs (asking-add.ts).

/** Its file, in the directory in which the executable works. */
export const kubeconfigFile = "kubeconfig";

/** The API server that it names. Nobody listens at that port. */
export const server = "https://127.0.0.1:1";

/**
 * In the form in which Linkerd's installer writes it, so that what reads that is compiled. `authority`
 * is base64 of a certificate, `user` are lines of YAML.
 */
export function kubeconfigOf(authority: string, user: readonly string[]): string {
  return `# Kubeconfig file for linkerd CNI plugin.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: ${server}
    certificate-authority-data: ${authority}
users:
- name: linkerd-cni
  user:
${user.map((line) => `    ${line}`).join("\n")}
contexts:
- name: linkerd-cni-context
  context:
    cluster: local
    user: linkerd-cni
current-context: linkerd-cni-context
`;
}
