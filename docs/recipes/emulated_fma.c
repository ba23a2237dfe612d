// The multiply-add of the machine that this is compiled for, as a device: protocol 2 of docs/process_device.md in text,
// with nothing but the C library. Whatever runs a static program of that machine runs it:
//
//     riscv64-linux-gnu-gcc -O2 -static emulated_fma.c -o fma
//     mmaprobe derive fma.f32 -d 'process:qemu-riscv64-static ./fma'
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#if defined(__aarch64__)
#define MACHINE "fma-aarch64"
#define SINGLE "fmadd %s0, %s1, %s2, %s3"
#define DOUBLE "fmadd %d0, %d1, %d2, %d3"
#define REGISTER "w"
// FPCR.DN: every NaN has one code, as on RISC-V.
static void begin(void) { __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(1) << 25)); }
#elif defined(__riscv_flen) && __riscv_flen == 64
#define MACHINE "fma-riscv64"
#define SINGLE "fmadd.s %0, %1, %2, %3"
#define DOUBLE "fmadd.d %0, %1, %2, %3"
#define REGISTER "f"
static void begin(void) {}
#else
#error "say here how this machine spells its multiply-add"
#endif

// What the program says of fma.FORMAT: one lane, one vector.
#define ROW(f)                                                                                \
    "{ family = \"fma\", opcode = \"fma." f "\", m = 1, n = 1, k = 1, a = \"" f "\", b = \"" f \
    "\", c = \"" f "\", d = \"" f "\", on = [{ architectures = [\"" MACHINE                   \
    "\"], primitive = \"FMA[" f "," f "->" f "]\" }] }"
static const char description[] =
    "ok 3\nschema = 1\narchitectures = { " MACHINE " = {} }\nrow = [" ROW("f32") ", " ROW("f64") "]\n";

// Small: riscv-pk reads on, and waits, where a read of more than 1024 bytes comes to a multiple of that.
static char buffer[512];
static FILE* in;

static uint32_t single(uint32_t a, uint32_t b, uint32_t c) {
    float x, y, z, d;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    memcpy(&z, &c, sizeof z);
    __asm__(SINGLE : "=" REGISTER(d) : REGISTER(x), REGISTER(y), REGISTER(z));
    memcpy(&a, &d, sizeof a);
    return a;
}

static uint64_t twice(uint64_t a, uint64_t b, uint64_t c) {
    double x, y, z, d;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    memcpy(&z, &c, sizeof z);
    __asm__(DOUBLE : "=" REGISTER(d) : REGISTER(x), REGISTER(y), REGISTER(z));
    memcpy(&a, &d, sizeof a);
    return a;
}

// Answers "run ID COUNT": a line "a b c" in, a line "d" out. 0 where something else comes.
static int run(void) {
    char id[16];
    unsigned long count;
    if (fscanf(in, "%15s %lu", id, &count) != 2) return 0;
    for (printf("ok %lu\n", count); count; count--) {
        uint64_t a, b, c;
        if (fscanf(in, "%" SCNx64 " %" SCNx64 " %" SCNx64, &a, &b, &c) != 3) return 0;
        if (strcmp(id, "fma.f32") == 0)
            printf("%08" PRIx32 "\n", single((uint32_t)a, (uint32_t)b, (uint32_t)c));
        else
            printf("%016" PRIx64 "\n", twice(a, b, c));
    }
    return 1;
}

// A first argument is the file to read in place of standard input, where a simulator has a console on that.
int main(int given, char** arguments) {
    char word[16];
    in = given > 1 ? fopen(arguments[1], "r") : stdin;
    if (!in) return 1;
    setvbuf(in, buffer, _IOFBF, sizeof buffer);
    begin();
    printf("mmaprobe 2 fma " MACHINE " text fma.f32 fma.f64\n");
    fflush(stdout);
    while (fscanf(in, "%15s", word) == 1) {
        if (strcmp(word, "describe") == 0)
            fputs(description, stdout);
        else if (strcmp(word, "run") != 0 || !run())
            return 1;
        fflush(stdout);
    }
    return 0;
}
