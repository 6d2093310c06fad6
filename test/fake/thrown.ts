// What a piece of code throws, as a value that can be compared whole.
import { CniError } from "../../src/cni/error.ts";
import { toCniError } from "../../src/command/failure.ts";
import { Fault } from "../../src/fault.ts";

/** A CniError as this file describes it. */
export type Thrown = { readonly code: number; readonly message: string; readonly details: string };

export function cniError(code: number, message: string, details = ""): Thrown {
  return { code, message, details };
}

/** The parts of a CniError, or of a fault as the CNI error that becomes of it; or `<name>: <message>` of another error; undefined when nothing is thrown. */
export function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return described(error);
  }
  return undefined;
}

/** The same for work that takes its time. */
export async function rejectionOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return described(error);
  }
  return undefined;
}

function described(error: unknown): unknown {
  if (error instanceof CniError || error instanceof Fault) {
    const { code, message, details } = toCniError(error, "");
    return cniError(code, message, details);
  }
  return String(error);
}
