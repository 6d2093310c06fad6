// The error that leaves the plugin, and its JSON.
import { expect, test } from "vitest";
import { CniError, errorCode, renderError } from "../../src/cni/error.ts";

test("errorCode holds the codes of the spec, of the Go library, and our own", () => {
  expect(errorCode).toEqual({
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
  });
});

test("renderError() leaves details out when there are none", () => {
  const error = new CniError(errorCode.invalidConf, "missing network name");
  expect(renderError(error, "1.0.0")).toBe(
    '{"cniVersion":"1.0.0","code":7,"msg":"missing network name"}',
  );
});

test("renderError() gives details, escaped, and never the cause", () => {
  const more = { details: 'line 1\n"line 2"', cause: new Error("secret") };
  const error = new CniError(errorCode.drift, "2 drifts", more);
  expect(renderError(error, "1.1.0")).toBe(
    '{"cniVersion":"1.1.0","code":100,"msg":"2 drifts","details":"line 1\\n\\"line 2\\""}',
  );
});
