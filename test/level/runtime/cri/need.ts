// What a test needs of the machine. Without it the test is skipped and says why; in CI that is a failure.

type Skip = (condition: boolean, note: string) => void;

/** Skips the test, or fails it in CI, when something is lacking: `lack` says what. */
export function need(skip: Skip, lack: string | undefined): void {
  if (lack === undefined) return;
  if (process.env["CI"] !== undefined) throw new Error(lack);
  skip(true, lack);
}
