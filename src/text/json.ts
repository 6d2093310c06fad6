// JSON from outside: conf, records, the API's answers. Read with a bound on its depth, so that whatever walks through the value
// afterwards (a schema, a comparison, JSON.stringify) may do so by recursion.

/** Far deeper than anything that is meant (a conf has some 6 levels, a pod of the API 12), and as far from the stack's end. */
export const deepestLevel = 2_500;

/**
 * The value of a JSON text.
 * @throws SyntaxError when it is none, or has objects and arrays in each other to more than `deepestLevel` levels.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (isDeeperThan(value, deepestLevel)) {
    throw new SyntaxError(`the JSON is nested to more than ${deepestLevel} levels`);
  }
  return value;
}

// Level by level, each value once: recursion is what must not happen yet.
function isDeeperThan(value: unknown, levels: number): boolean {
  let level = [value].filter(isNest);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > levels) return true;
    level = level.flatMap((nest) => Object.values(nest).filter(isNest));
  }
  return false;
}

function isNest(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
