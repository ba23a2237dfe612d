// RISC-V's dot products (Zvdota, Zvbdota), as a device: protocol 1 of docs/process_device.md, in text. The architecture is
// the vector length of the machine that runs it; docs/emulators.md says how Spike does.
//
//     riscv64-linux-gnu-gcc -O2 -march=rv64gcv -static riscv_dot.c -o riscv_dot
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 65536 };  // bits of a vector register at most
// Small: riscv-pk reads on, and waits, where a read of more than 1024 bytes comes to a multiple of that.
static char buffer[512];
static FILE* in;

typedef struct {
    const char* opcode;
    unsigned bits;       // of an element of A and B: SEW
    unsigned columns;    // of B: 1, or 8 (of which each is a register)
    unsigned alternate;  // values of altfmt: 1 (bf16 is one that SEW has beside another), or 2
    void (*run)(const void* a, const void* b, uint32_t* c, uint64_t vl, uint64_t vtype);
} Unit;

// vs1 = v16 is A, vs2 = v24 is B, vd = v8 the accumulators; the word is the opcode with vm = 1 and these.
#define UNIT(name, word)                                                                                        \
    static void name(const void* a, const void* b, uint32_t* c, uint64_t vl, uint64_t vtype) {                  \
        __asm__ volatile("vl8re8.v v16, (%0)\n\tvl8re8.v v24, (%1)\n\tvsetivli x0, 8, e32, m2, ta, ma\n\t"      \
                         "vle32.v v8, (%2)\n\tvsetvl x0, %3, %4\n\t.4byte %5\n\t"                               \
                         "vsetivli x0, 8, e32, m2, ta, ma\n\tvse32.v v8, (%2)"                                  \
                         :                                                                                      \
                         : "r"(a), "r"(b), "r"(c), "r"(vl), "r"(vtype),                                         \
                           "i"(word | 8 << 7 | 16 << 15 | 24 << 20 | 1 << 25)                                   \
                         : "memory");                                                                           \
    }
UNIT(vfwdota, 0x90001077)
UNIT(vfqwdota, 0x98001077)
UNIT(vfqwdota_alt, 0x9c001077)
UNIT(vqwdotau, 0x98000077)
UNIT(vqwdotas, 0x9c000077)
UNIT(vfwbdota, 0xb0001077)
UNIT(vfqwbdota, 0xb8001077)
UNIT(vfqwbdota_alt, 0xbc001077)
UNIT(vqwbdotau, 0xb8000077)
UNIT(vqwbdotas, 0xbc000077)

static const Unit units[] = {
    {"vfwdota.vv", 16, 1, 1, vfwdota},           {"vfqwdota.vv", 8, 1, 2, vfqwdota},
    {"vfqwdota.alt.vv", 8, 1, 2, vfqwdota_alt},  {"vqwdotau.vv", 8, 1, 2, vqwdotau},
    {"vqwdotas.vv", 8, 1, 2, vqwdotas},          {"vfwbdota.vv", 16, 8, 1, vfwbdota},
    {"vfqwbdota.vv", 8, 8, 2, vfqwbdota},        {"vfqwbdota.alt.vv", 8, 8, 2, vfqwbdota_alt},
    {"vqwbdotau.vv", 8, 8, 2, vqwbdotau},        {"vqwbdotas.vv", 8, 8, 2, vqwbdotas},
};
enum { UNITS = sizeof units / sizeof *units };

static uint64_t vector_bytes(void) {
    uint64_t bytes;
    __asm__("csrr %0, vlenb" : "=r"(bytes));
    return bytes;
}

// The id of a unit with 2^lmul registers to a group: its modifiers in order, defaults left out.
static void spell(char* id, const Unit* unit, unsigned altfmt, unsigned lmul) {
    const char* between = altfmt && lmul ? "," : "";
    char left[16] = "", right[16] = "";
    if (altfmt) strcpy(left, "altfmt=1");
    if (lmul) sprintf(right, "lmul=%u", 1u << lmul);
    sprintf(id, altfmt || lmul ? "%s{%s%s%s}" : "%s", unit->opcode, left, between, right);
}

// One number in hexadecimal, as scanf would read it, in a tenth of the instructions.
static uint32_t number(void) {
    uint32_t value = 0;
    int at;
    do at = getc(in);
    while (at == ' ' || at == '\n');
    for (; at != ' ' && at != '\n'; at = getc(in)) {
        if (at == EOF) exit(1);
        value = value << 4 | (uint32_t)(at <= '9' ? at - '0' : at - 'a' + 10);
    }
    return value;
}

static void put(uint8_t* at, unsigned bits, uint64_t place, uint32_t value) {
    if (bits == 16)
        ((uint16_t*)at)[place] = (uint16_t)value;
    else
        at[place] = (uint8_t)value;
}

static void answer(const Unit* unit, unsigned altfmt, unsigned lmul, unsigned long count) {
    static uint8_t a[MOST], b[MOST] __attribute__((aligned(16)));
    const uint64_t k = (vector_bytes() * 8 / unit->bits) << lmul;
    // vtype: LMUL, SEW, tail and mask agnostic, altfmt; bf16 is the other format of 16 bits.
    const uint64_t vtype = lmul | (unit->bits == 16 ? 1 : 0) << 3 | 3 << 6 | (uint64_t)(altfmt || unit->bits == 16) << 8;
    for (printf("ok %lu\n", count); count; count--) {
        uint32_t c[8] = {0};
        for (uint64_t i = 0; i < k; i++) put(a, unit->bits, i, number());
        for (uint64_t i = 0; i < k; i++)
            for (uint64_t column = 0; column < unit->columns; column++) put(b, unit->bits, column * k + i, number());
        for (unsigned i = 0; i < unit->columns; i++) c[i] = number();
        unit->run(a, b, c, k, vtype);
        for (unsigned i = 0; i < unit->columns; i++) printf("%08" PRIx32 "%c", c[i], i + 1 < unit->columns ? ' ' : '\n');
    }
    fflush(stdout);
}

// Whether an id is a unit's in some state; it is run then, or announced where nothing is asked.
static int each(const char* asked, unsigned long count) {
    for (const Unit* unit = units; unit < units + UNITS; unit++)
        for (unsigned altfmt = 0; altfmt < unit->alternate; altfmt++)
            for (unsigned lmul = 0; lmul < (unit->columns == 1 ? 4 : 1); lmul++) {
                char id[64];
                spell(id, unit, altfmt, lmul);
                if (!asked) printf(" %s", id);
                if (asked && strcmp(asked, id) == 0) return answer(unit, altfmt, lmul, count), 1;
            }
    return 0;
}

// A first argument is the file to read in place of standard input, where a simulator has a console on that.
int main(int given, char** arguments) {
    char id[64];
    unsigned long count;
    in = given > 1 ? fopen(arguments[1], "r") : stdin;
    if (!in) return 1;
    setvbuf(in, buffer, _IOFBF, sizeof buffer);
    printf("mmaprobe 1 riscv-dot riscv-vlen%" PRIu64 " text", vector_bytes() * 8);
    each(NULL, 0);
    printf("\n");
    fflush(stdout);
    while (fscanf(in, " run %63s %lu", id, &count) == 2)
        if (!each(id, count)) return 1;
    return 0;
}
