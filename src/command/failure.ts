// The table of what may be thrown, and the CNI error that each becomes. Asked in one place (run.ts), at the top.
import { CniError, type ErrorCode, errorCode } from "../cni/error.ts";
import { Fault, type FaultKind } from "../fault.ts";
import { BatchError } from "../netfilter/iptables/client.ts";

/** Anything that was thrown, as a CNI error; `subject` is whom the command was about. */
export function toCniError(thrown: unknown, subject: string): CniError {
  if (thrown instanceof CniError) return thrown;
  if (thrown instanceof Fault) return ofFault(thrown);
  if (thrown instanceof BatchError) return ofBatch(thrown, subject);
  if (isSystemError(thrown)) {
    return new CniError(errorCode.ioFailure, `${thrown.syscall} failed for ${subject}`, {
      details: thrown.message,
      cause: thrown,
    });
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new CniError(errorCode.internal, `internal error for ${subject}: ${message}`, {
    details: "this is a fault of sluice; please report it with the log",
    cause: thrown,
  });
}

const codes: Readonly<Record<FaultKind, ErrorCode>> = {
  "netns-gone": errorCode.unknownContainer,
  "netns-own": errorCode.invalidNetns,
  "netns-unusable": errorCode.netnsUnusable,
  io: errorCode.ioFailure,
  "try-again": errorCode.tryAgainLater,
  rejected: errorCode.restoreRejected,
  "pod-unreadable": errorCode.podUnreadable,
  "invalid-conf": errorCode.invalidConf,
};

function ofFault(fault: Fault): CniError {
  const { kind, message, details } = fault;
  return new CniError(codes[kind], message, { details, cause: fault });
}

function ofBatch(error: BatchError, subject: string): CniError {
  const code = error.isPassing ? errorCode.tryAgainLater : errorCode.netnsUnusable;
  return new CniError(code, `could not work in the netns of ${subject}: ${error.message}`, {
    details: error.advice || halfway,
    cause: error,
  });
}

const halfway = "nothing of ours is left half-way; a family's rules are loaded all or not at all";

type SystemError = Error & { readonly syscall: string };

function isSystemError(thrown: unknown): thrown is SystemError {
  return thrown instanceof Error && "syscall" in thrown && typeof thrown.syscall === "string";
}
