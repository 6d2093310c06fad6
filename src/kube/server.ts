// The address of the API server in a kubeconfig: what is taken for one, and what of a wrong one may be told. Pure.

const form = "it must be https://host:port, with [brackets] around an IPv6 address";

/**
 * The server's address, without a slash at its end.
 * @throws RangeError for what is none, or carries more than an address; a text that may hold a secret is not repeated.
 */
export function serverOf(given: string): string {
  // Older installers of linkerd-cni put brackets around IPv4 addresses too.
  const server = given.replace(/^(https:\/\/)\[([0-9.]+)\]/, "$1$2").replace(/\/{1,9}$/, "");
  if (given.includes("@")) {
    throw new RangeError("server: a user or password in it is not honoured; give a token instead");
  }
  if (/[?#]/.test(given)) throw new RangeError("server: it must have no query and no fragment");
  if (URL.canParse(server) && server.startsWith("https://")) return server;
  throw new RangeError(
    isPlain(given) ? `server ${JSON.stringify(given)}: ${form}` : `server: ${form}`,
  );
}

// Hosts, addresses and ports: nothing that could be a secret at the wrong place.
function isPlain(given: string): boolean {
  const address = /^(?:[a-z]{1,9}:\/\/)?(?:[\da-f:.[\]]{1,60}|[a-z\d.-]{1,100}(?::\d{1,5})?)$/i;
  return address.test(given);
}
