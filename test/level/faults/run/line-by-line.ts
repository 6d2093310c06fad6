// A restore program that is not atomic, for the proof that half states are found: a shell script in the place of the node's.

/** Takes one line of its input at a time, each a transaction of its own. */
export const lineByLine = `#!/bin/sh
grep '^[:-]' | while read -r line; do
  printf '*nat\\n%s\\nCOMMIT\\n' "$line" | "/usr/sbin/\${0##*/}" --noflush
done
exit 0
`;
