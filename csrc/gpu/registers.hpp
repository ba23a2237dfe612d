// All operands of one or more items in the registers of a warp or wave.  `multiply` is the instruction, rendered.
// A kernel's group of lanes runs ITEMS items at a time (of Volta's m8n8k4 four, else one).

struct Registers {
    A::Word a[A::registers];
    B::Word b[B::registers];
    C::Word c[C::registers];
    D::Word d[D::registers];
    ScaleA::Word scale_a[ScaleA::registers];
    ScaleB::Word scale_b[ScaleB::registers];
    Metadata::Word metadata[Metadata::registers];
};

MMAPROBE_DEVICE void load_all(const Operands& given, Word64 item, int lane, Registers& of) {
    load<A>(given.a, given.items, item, lane, of.a);
    load<B>(given.b, given.items, item, lane, of.b);
    load<C>(given.c, given.items, item, lane, of.c);
    load<ScaleA>(given.scale_a, given.items, item, lane, of.scale_a);
    load<ScaleB>(given.scale_b, given.items, item, lane, of.scale_b);
    load<Metadata>(given.metadata, given.items, item, lane, of.metadata);
}

MMAPROBE_DEVICE void store_all(const Operands& given, Word64 item, int lane, const Registers& of) {
    store<D>(given.d, given.items, item, lane, of.d);
}

#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void multiply(Registers& of);
#endif
