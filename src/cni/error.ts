// The one error that leaves the plugin: its codes, and its JSON on stdout.
// Runtimes show only "msg; details", so both must say what failed, on what, and what to do.

/** Error codes: up to 99 as in the CNI spec ("Error", codes) and its Go library, from 100 our own. */
export const errorCode = {
  incompatibleVersion: 1,
  unsupportedField: 2,
  unknownContainer: 3,
  invalidEnvironment: 4,
  ioFailure: 5,
  decodingFailure: 6,
  invalidConf: 7,
  invalidNetns: 8,
  tryAgainLater: 11,
  notAvailable: 50,
  drift: 100,
  restoreRejected: 101,
  netnsUnusable: 102,
  podUnreadable: 103,
  internal: 999,
} as const;

export type ErrorCode = (typeof errorCode)[keyof typeof errorCode];

/** What `new CniError` takes beside the code and the message. */
export type ErrorMore = { details?: string; cause?: unknown };

/** An error with a CNI code. `message` and `details` each stand alone; `cause` is only for the log. */
export class CniError extends Error {
  readonly code: ErrorCode;
  readonly details: string;

  constructor(code: ErrorCode, message: string, more: ErrorMore = {}) {
    super(message, { cause: more.cause });
    this.name = "CniError";
    this.code = code;
    this.details = more.details ?? "";
  }
}

/** Renders the error as the JSON document that the spec asks for; `details` is left out when empty. */
export function renderError(error: CniError, cniVersion: string): string {
  const { code, message: msg, details } = error;
  return JSON.stringify({ cniVersion, code, msg, ...(details === "" ? {} : { details }) });
}
