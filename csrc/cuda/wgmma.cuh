// wgmma in all its forms: dense and sparse, A in shared memory or in registers.  A warpgroup is a CTA and runs one item
// at a time.  C goes into the accumulator's registers, D comes out of them.  `multiply` is the instruction, rendered.

constexpr int THREADS = 128;
constexpr int START_B = (MatrixA::bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

struct Registers {
    A::Word a[A::registers];
    D::Word d[D::registers];
    Metadata::Word metadata[Metadata::registers];
};

MMAPROBE_DEVICE void fill_all(const Operands& given, Word64 item, int thread, Byte* memory) {
    fill<MatrixA>(given.a, item, thread, THREADS, memory);
    fill<MatrixB>(given.b, item, thread, THREADS, memory + START_B);
}

// Without C the accumulator starts as all ones, a NaN in every format: scale-d = 0 must pass over it.
MMAPROBE_DEVICE void load_all(const Operands& given, Word64 item, int thread, Registers& of) {
#pragma unroll
    for (int r = 0; r < D::registers; ++r) of.d[r] = ~D::Word(0);
    load<A>(given.a, given.items, item, thread, of.a);
    load<C>(given.c, given.items, item, thread, of.d);
    load<Metadata>(given.metadata, given.items, item, thread, of.metadata);
}

MMAPROBE_DEVICE Word64 describe_a(Word32 start) { return MatrixA::describe(start); }
MMAPROBE_DEVICE Word64 describe_b(Word32 start) { return MatrixB::describe(start + START_B); }

MMAPROBE_DEVICE void store_all(const Operands& given, Word64 item, int thread, const Registers& of) {
    store<D>(given.d, given.items, item, thread, of.d);
}

#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void multiply(Registers& of, Word64 a, Word64 b);
#endif
