// Layout of struct state (registers.c), for the assembly files, and the loops over vector registers.
#define RAX 0
#define RBX 8
#define RCX 16
#define RDX 24
#define RSI 32
#define RDI 40
#define RBP 48
#define R8 56
#define R9 64
#define R10 72
#define R11 80
#define R12 88
#define R13 96
#define R14 104
#define R15 112
#define FLAGS 120
#define VECTORS 128
#define MASKS 2176
#define MXCSR 2240
#define FCW 2244
#define ENVIRONMENT 2248 /* fnstenv, 28 bytes; the tag word is at 8 */
#define ST 2304          /* st0, st1, 16 bytes each */
#define STACK 2336       /* three words passed on the stack, then rsp at entry */

#if LEVEL == 2
#define VECTOR_MOVE vmovdqu64
#define VECTOR(n) %zmm##n
#elif LEVEL == 1
#define VECTOR_MOVE vmovdqu
#define VECTOR(n) %ymm##n
#else
#define VECTOR_MOVE movdqu
#define VECTOR(n) %xmm##n
#endif
#define EACH_LOW_VECTOR(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#if LEVEL == 2
#define EACH_VECTOR(DO) EACH_LOW_VECTOR(DO) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27) DO(28) DO(29) DO(30) DO(31)
#define EACH_MASK(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#else
#define EACH_VECTOR(DO) EACH_LOW_VECTOR(DO)
#define EACH_MASK(DO)
#endif
#define LOAD_VECTOR(n) VECTOR_MOVE VECTORS+64*n(%rdi), VECTOR(n);
#define STORE_VECTOR(n) VECTOR_MOVE VECTOR(n), VECTORS+64*n(%rdi);
#define LOAD_MASK(n) kmovq MASKS+8*n(%rdi), %k##n;
#define STORE_MASK(n) kmovq %k##n, MASKS+8*n(%rdi);
