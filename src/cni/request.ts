// The CNI_* environment of one call, read and validated in the order of the reference library (skel 1.3).
// First stage of every command; nothing else in the program looks at these variables.
import { CniError, errorCode } from "./error.ts";

/** The environment as the process has it. An empty value counts as unset, as in the reference library. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One call. Values that the verb does not have are "". */
export type Request = {
  /** CNI_COMMAND as given; it may be no verb at all, which is only reported after stdin is found good. */
  readonly command: string;
  readonly containerId: string;
  readonly netns: string;
  readonly ifName: string;
  readonly args: string;
  /** CNI_NETNS_OVERRIDE: the caller vouches that acting on the plugin's own netns is meant. */
  readonly netnsOverride: boolean;
};

type Variable = { name: string; neededBy: readonly string[]; validate?: (value: string) => void };

const attachmentVerbs = ["ADD", "CHECK", "DEL"];
const netnsVerbs = ["ADD", "CHECK"];
const pathVerbs = ["ADD", "CHECK", "DEL", "GC", "STATUS"];

const variables: readonly Variable[] = [
  { name: "CNI_CONTAINERID", neededBy: attachmentVerbs, validate: validateContainerId },
  { name: "CNI_NETNS", neededBy: netnsVerbs },
  { name: "CNI_IFNAME", neededBy: attachmentVerbs, validate: validateIfName },
  { name: "CNI_PATH", neededBy: pathVerbs },
];

/**
 * Reads one call from the environment.
 * @throws CniError 4 for a bad id or interface name (at once, before later variables are missed), or
 * for all missing variables together. CNI_COMMAND itself must be set: without it there is no call.
 */
export function parseRequest(env: Environment): Request {
  const value = (name: string) => env[name] ?? "";
  const command = value("CNI_COMMAND");
  const needed = variables.filter(({ neededBy }) => neededBy.includes(command));
  for (const { name, validate } of needed) if (value(name) !== "") validate?.(value(name));
  const missing = needed.map(({ name }) => name).filter((name) => value(name) === "");
  if (missing.length > 0) throw invalid(`required env variables [${missing.join(",")}] missing`);
  return {
    command,
    containerId: value("CNI_CONTAINERID"),
    netns: value("CNI_NETNS"),
    ifName: value("CNI_IFNAME"),
    args: value("CNI_ARGS"),
    netnsOverride: ["1", "true"].includes(value("CNI_NETNS_OVERRIDE").toLowerCase()),
  };
}

/** What containerIDs and network names may look like (spec, "Parameters"). */
export const namePattern = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** Longer ids make no file name for the record; no runtime has more than 64 characters and a prefix. */
export const longestContainerId = 150;

function validateContainerId(id: string): void {
  if (!namePattern.test(id)) throw invalid("invalid characters in containerID", id);
  if (id.length > longestContainerId) {
    throw invalid(
      "containerID is too long",
      `${id.length} characters, at most ${longestContainerId}`,
    );
  }
}

// Unicode's white space one by one: \p{White_Space} is looked up in tables, which takes half a millisecond.
const unfit = /[/:\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

// The kernel's own rules for a device's name (dev_valid_name).
function validateIfName(name: string): void {
  if (Buffer.byteLength(name) > 15) {
    throw invalid("interface name is too long", "interface name should be less than 16 characters");
  }
  if (name === "." || name === "..") throw invalid("interface name is . or ..");
  if (unfit.test(name)) {
    throw invalid("interface name contains / or : or whitespace characters");
  }
}

function invalid(message: string, details = ""): CniError {
  return new CniError(errorCode.invalidEnvironment, message, { details });
}
