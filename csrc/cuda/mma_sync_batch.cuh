// The kernel of a batch for mma.sync: its items from memory through the instruction and back.
#ifndef MMAPROBE_HOST
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
