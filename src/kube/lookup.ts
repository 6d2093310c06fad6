// Finds the addresses of an API server that is known by name. Edge.
// The system's resolver may take longer than a try may (5 s for a first name server that is away): what it finds then is for
// the next try, which so need not begin anew.
import type { LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";

/** Asks the system's resolver for all addresses of a name. */
export type AskResolver = (name: string) => Promise<LookupAddress[]>;

/** A look-up for one name, which the tries of one command share. One that failed is begun anew. */
export function sharedLookup(askResolver: AskResolver = ask): LookupFunction {
  let asked: Promise<LookupAddress[]> | undefined;
  return (name, options, callback) => {
    asked ??= askResolver(name).catch((error: unknown) => {
      asked = undefined;
      throw error;
    });
    asked.then(
      (found) => {
        const [first] = found;
        if (options.all === true) callback(null, found);
        else callback(null, first?.address ?? "", first?.family);
      },
      (error: unknown) => {
        callback(error instanceof Error ? error : new Error(String(error)), "");
      },
    );
  };
}

// Loaded when a name is looked up: most kubeconfigs have an address.
function ask(name: string): Promise<LookupAddress[]> {
  const { lookup } = process.getBuiltinModule("node:dns");
  return new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, found) =>
      error === null ? resolve(found) : reject(error),
    );
  });
}
