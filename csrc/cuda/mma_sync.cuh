// mma.sync in all its forms: dense, sparse, block scaled; floating, integer and bits.  A warp runs one item at a time
// (of Volta's m8n8k4 four), all operands in its registers.  `multiply` is the instruction, rendered.

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

// `done` counts the items that were stored.
extern "C" __global__ void mmaprobe_run(Operands given, Word64* done) {
  const int lane = threadIdx.x % 32;
  const Word64 warps = Word64(gridDim.x) * (blockDim.x / 32);
  const Word64 warp = Word64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  for (Word64 item = warp * ITEMS; item < given.items; item += warps * ITEMS) {
    Registers of;
    load_all(given, item, lane, of);
    multiply(of);
    store_all(given, item, lane, of);
    const Word64 stored = given.items - item < ITEMS ? given.items - item : ITEMS;
    __syncwarp();
    if (lane == 0) atomicAdd(done, stored);
  }
}
#endif
