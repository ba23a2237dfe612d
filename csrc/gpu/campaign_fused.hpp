// The fused kernel of a campaign, but for what a vendor calls a thread: group `number` of `groups` goes from tile to
// tile in shared memory of its own.  `done` counts the tiles that were judged.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void meet();  // the threads of a group wait for each other, and see what was written
MMAPROBE_DEVICE void multiply_tiles(const Memory& memory, Byte* own, int thread);

MMAPROBE_DEVICE void run_fused(const Campaign& of, Word64* done, Byte* own, int thread, Word64 number, Word64 groups) {
    const Memory memory = Places{own + Shape::matrices, 0}.memory(Shape::tiles, false);
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
