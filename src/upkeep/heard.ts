// Collects the warnings of one piece of work, so that they can be kept in the attachment's record.
import { type Logger, redact } from "../log.ts";
import { printable } from "../text/printable.ts";

/** So many warnings are kept, each of so many characters. */
const most = 20;
const longest = 300;

/** A logger that passes on what is said, and the warnings among it so far. */
export type Hearing = { readonly log: Logger; readonly warnings: readonly string[] };

/** Listens in; begins with the warnings that are known already. What was heard before counts once. */
export function hearing(log: Logger, known: readonly string[] = []): Hearing {
  const warnings = [...known];
  const warn: Logger["warn"] = (fields, message) => {
    const text = inWords(fields, message);
    if (warnings.length < most && !warnings.includes(text)) warnings.push(text);
    log.warn(fields, message);
  };
  return {
    log: {
      debug: (fields, text) => log.debug(fields, text),
      info: (fields, text) => log.info(fields, text),
      warn,
      error: (fields, text) => log.error(fields, text),
    },
    warnings,
  };
}

// The pod is the record's own.
function inWords({ pod: _, err, ...fields }: Fields, message: string): string {
  const error = err instanceof Error ? [err.message] : [];
  const rest = Object.keys(fields).length === 0 ? [] : [JSON.stringify(fields)];
  return printable(redact([message, ...error, ...rest].join(": ")), longest);
}

type Fields = Parameters<Logger["warn"]>[0];
