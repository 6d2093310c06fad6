// What differs between the backends, in one place: how rules are found, spelt, written and read through each. Pure. Nobody
// else asks which of them it is dealing with, so a further one is a further entry here.
import { renderRestore } from "./restore.ts";
import { parseTables, type SavedTables } from "./save.ts";
import { type Backend, backends, type Family } from "./table.ts";
import type { Transaction } from "./transaction.ts";

/** A backend, as far as it is not like the others. */
export type BackendTraits = {
  /** The text that its restore takes. */
  readonly render: (transaction: Transaction) => string;
  /** Reads what its save printed. @throws SaveSyntaxError for what is no save. */
  readonly read: (saved: string) => SavedTables;
  /** Save may be asked for one table alone. Legacy's would make the table by being asked. */
  readonly savesOne: boolean;
  /** The file that names the tables which are there: an empty one spares the save. Not there: save is asked. */
  readonly tableList?: Readonly<Record<Family, string>>;
  /** Its tables are among those that nft shows. */
  readonly isShownByNft: boolean;
  /** The rights that its tools need. */
  readonly rights: readonly ("CAP_NET_ADMIN" | "CAP_NET_RAW")[];
};

const traits: Readonly<Record<Backend, BackendTraits>> = {
  nft: {
    render: renderRestore,
    read: parseTables,
    savesOne: true,
    isShownByNft: true,
    rights: ["CAP_NET_ADMIN"],
  },
  legacy: {
    render: renderRestore,
    read: parseTables,
    savesOne: false,
    tableList: {
      ipv4: "/proc/self/net/ip_tables_names",
      ipv6: "/proc/self/net/ip6_tables_names",
    },
    isShownByNft: false,
    rights: ["CAP_NET_ADMIN", "CAP_NET_RAW"],
  },
};

/** What is particular to a backend. */
export function traitsOf(backend: Backend): BackendTraits {
  return traits[backend];
}

/** All backends but this one: rules of ours in them are doubled. */
export function othersThan(backend: Backend): Backend[] {
  return backends.filter((other) => other !== backend);
}
