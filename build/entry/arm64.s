// What the executable begins with on AArch64, before anything of Node's: the dynamic linker jumps here (build/entry.ts).
// Of the runtime's environment only CNI_* and PATH are left. The rest is for other programs, and Node acts on some of it
// before any JavaScript runs. Where Node could only abort for want of file descriptors, the answer is given here. And the
// process has an end, whatever keeps it waiting: Node's start itself does where the runtime may have no more processes.

    .set fewest_descriptors, 32
    .set RLIMIT_NOFILE, 7
    .set ITIMER_REAL, 0
    .set SYS_write, 64
    .set SYS_setitimer, 103
    .set SYS_exit_group, 94
    .set SYS_prlimit64, 261

    .text
    .globl begin
begin:
    // On the stack: argc, argv, 0, envp, 0, the auxiliary vector. x0 is the dynamic linker's, for Node's own entry.
    hint    #34                         // bti c
    ldr     x1, [sp]
    add     x1, sp, x1, lsl #3
    add     x1, x1, #16
    // x1 reads the list, x2 writes it. What lies behind it stays where it is: the C library has its address by now.
    mov     x2, x1
    ldr     w4, =0x5f494e43             // "CNI_"
    ldr     w5, =0x48544150             // "PATH"
next:
    ldr     x3, [x1], #8
    cbz     x3, filtered
    // A text may be shorter than what is compared, but something follows it: the last on the stack is the program's path.
    ldr     w6, [x3]
    cmp     w6, w4
    b.eq    keep
    cmp     w6, w5
    b.ne    next
    ldrb    w6, [x3, #4]
    cmp     w6, #'='
    b.ne    next
keep:
    str     x3, [x2], #8
    b       next
filtered:
    str     xzr, [x2]

    // setitimer(ITIMER_REAL, &longest, NULL): not for children.
    mov     x9, x0
    mov     x0, #ITIMER_REAL
    adr     x1, longest
    mov     x2, #0
    mov     x8, #SYS_setitimer
    svc     #0

    // prlimit64(0, RLIMIT_NOFILE, NULL, &limit). Node itself asks for as many as the second word of it allows.
    sub     sp, sp, #16
    mov     x0, #0
    mov     x1, #RLIMIT_NOFILE
    mov     x2, #0
    mov     x3, sp
    mov     x8, #SYS_prlimit64
    svc     #0
    cbnz    x0, go
    ldr     x4, [sp, #8]
    cmp     x4, #fewest_descriptors
    b.lo    refuse
go:
    add     sp, sp, #16
    mov     x0, x9
    b       node_entry

refuse:
    mov     x0, #1
    adr     x1, answer
    mov     x2, #answer_size
    mov     x8, #SYS_write
    svc     #0
    mov     x0, #1
    mov     x8, #SYS_exit_group
    svc     #0

    .ltorg
    .include "build/entry/constants.s"
