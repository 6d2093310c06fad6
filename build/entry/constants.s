/* What the instructions for each kind of machine have in common: their constants, behind the code. */

/* A runtime lets the plugin open too few files even to start; code 11 is "try again later". */
answer:
    .ascii "{\"cniVersion\":\"1.1.0\",\"code\":11,"
    .ascii "\"msg\":\"the process may open too few files at once: Node needs 32 to start, an ADD 64\","
    .ascii "\"details\":\"raise the limit of open files (LimitNOFILE, ulimit -n) of the container runtime\"}"
    .set answer_size, . - answer

/* Once, after as many seconds: more than the longest deadline (src/conf/schema.ts) and its clearing up. SIGALRM then ends it. */
    .balign 8
longest:
    .quad 0, 0, 120, 0
