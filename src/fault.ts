// The one error of the layers below the commands: what failed, of which kind, and what to do. They know nothing of CNI; which
// code each kind becomes says command/failure.ts.

export type FaultKind =
  /** The netns is not there. */
  | "netns-gone"
  /** It is the node's own, which nobody named on purpose. */
  | "netns-own"
  /** It cannot be worked in, and another try will not do. */
  | "netns-unusable"
  /** A file or a connection failed. */
  | "io"
  /** Another try may do. */
  | "try-again"
  /** The tools refused the rules. */
  | "rejected"
  /** What the pod says, or is, cannot be read or honoured. */
  | "pod-unreadable"
  /** The conf asks for what cannot be. */
  | "invalid-conf";

/** What `new Fault` takes beside the kind and the message. */
export type FaultMore = { readonly details?: string; readonly cause?: unknown };

/** An error for people: `message` says what failed and on what, `details` what to do. `cause` is only for the log. */
export class Fault extends Error {
  readonly kind: FaultKind;
  readonly details: string;

  constructor(kind: FaultKind, message: string, more: FaultMore = {}) {
    super(message, { cause: more.cause });
    this.name = "Fault";
    this.kind = kind;
    this.details = more.details ?? "";
  }
}
