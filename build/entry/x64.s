# What the executable begins with on x86-64, before anything of Node's: the dynamic linker jumps here (build/entry.ts).
# Of the runtime's environment only CNI_* and PATH are left. The rest is for other programs, and Node acts on some of it
# before any JavaScript runs. Where Node could only abort for want of file descriptors, the answer is given here. And the
# process has an end, whatever keeps it waiting: Node's start itself does where the runtime may have no more processes.

    .set fewest_descriptors, 32
    .set RLIMIT_NOFILE, 7
    .set ITIMER_REAL, 0
    .set SYS_write, 1
    .set SYS_setitimer, 38
    .set SYS_exit_group, 231
    .set SYS_prlimit64, 302

    .text
    .globl begin
begin:
    # On the stack: argc, argv, 0, envp, 0, the auxiliary vector. rdx is the dynamic linker's, for Node's own entry.
    endbr64
    mov     (%rsp), %rcx
    lea     16(%rsp,%rcx,8), %rsi
    # rsi reads the list, rdi writes it. What lies behind it stays where it is: the C library has its address by now.
    mov     %rsi, %rdi
next:
    mov     (%rsi), %rax
    add     $8, %rsi
    test    %rax, %rax
    jz      filtered
    # A text may be shorter than what is compared, but something follows it: the last on the stack is the program's path.
    cmpl    $0x5f494e43, (%rax)         # "CNI_"
    je      keep
    cmpl    $0x48544150, (%rax)         # "PATH"
    jne     next
    cmpb    $'=', 4(%rax)
    jne     next
keep:
    mov     %rax, (%rdi)
    add     $8, %rdi
    jmp     next
filtered:
    movq    $0, (%rdi)

    # setitimer(ITIMER_REAL, &longest, NULL): not for children.
    mov     %rdx, %r12
    mov     $ITIMER_REAL, %edi
    lea     longest(%rip), %rsi
    xor     %edx, %edx
    mov     $SYS_setitimer, %eax
    syscall

    # prlimit64(0, RLIMIT_NOFILE, NULL, &limit). Node itself asks for as many as the second word of it allows.
    sub     $16, %rsp
    xor     %edi, %edi
    mov     $RLIMIT_NOFILE, %esi
    xor     %edx, %edx
    mov     %rsp, %r10
    mov     $SYS_prlimit64, %eax
    syscall
    test    %rax, %rax
    jnz     go
    cmpq    $fewest_descriptors, 8(%rsp)
    jb      refuse
go:
    add     $16, %rsp
    mov     %r12, %rdx
    jmp     node_entry

refuse:
    mov     $1, %edi
    lea     answer(%rip), %rsi
    mov     $answer_size, %edx
    mov     $SYS_write, %eax
    syscall
    mov     $1, %edi
    mov     $SYS_exit_group, %eax
    syscall

    .include "build/entry/constants.s"
