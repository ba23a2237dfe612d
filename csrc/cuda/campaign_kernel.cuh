// The fused kernel of a campaign: groups of threads go from tile to tile.  `done` counts the tiles that were judged.
#ifndef MMAPROBE_HOST
extern "C" __global__ void __launch_bounds__(Shape::threads * Shape::groups) mmaprobe_run(Campaign of, Word64* done) {
  extern __shared__ __align__(16) Byte shared[];
  const int thread = threadIdx.x % Shape::threads, group = threadIdx.x / Shape::threads;
  Byte* own = aligned(shared) + group * Shape::bytes;
  const Memory memory = Places{own + Shape::matrices, 0}.memory(Shape::tiles, false);
  const Word64 groups = Word64(gridDim.x) * Shape::groups, number = Word64(blockIdx.x) * Shape::groups + group;
  Word64 judged = 0, checksum = 0;
  Word32 wrong = 0;
  for (Word64 first = number * Shape::tiles; first < of.tiles; first += groups * Shape::tiles) {
    make_tiles(of, first, thread, memory, 0);
    meet();
    seal_tiles(thread, memory, 0);
    meet();
    multiply_tiles(memory, own, thread);
    meet();
    sabotage(of, first, thread, memory, 0);
    meet();
    Judge judge = {of, memory, first, 0, 0, 0};
    judge.run(thread);
    wrong += judge.wrong;
    checksum += judge.checksum;
    judged += tiles_here(of, first);
    meet();
  }
  add_up(of, judged, wrong, checksum, thread, done);
}
#endif
