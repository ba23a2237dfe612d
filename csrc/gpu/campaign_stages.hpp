// A campaign in three launches: this kernel makes the vectors in device memory, the kernel of batches runs the instruction
// on them, this kernel judges.  For instructions whose own kernel is too much to be one with the rest.
enum Stage { MEASURE, MAKE, SPOIL, JUDGE };

// MEASURE: where the arrays a, b, c, scale_a, scale_b, metadata and d lie in the memory, and how large it is, as if they
// were counts of vectors.
MMAPROBE_DEVICE void measure(const Campaign& of) {
    Places places = {nullptr, 0};
    const Memory memory = places.memory(of.tiles, true);
    const void* at[] = {memory.a, memory.b, memory.c, memory.scale_a, memory.scale_b, memory.metadata, memory.d};
    for (int number = 0; number < 7; ++number) of.found->vectors[number] = reinterpret_cast<Word64>(at[number]);
    of.found->vectors[7] = places.used;
}

// A stage of the tile of one group; what it found is added to the counts.
MMAPROBE_DEVICE void run_stage(const Campaign& of, const Memory& memory, Word64 tile, int thread, Word64& wrong,
                               Word64& checksum) {
    if (of.stage == MAKE) return make_tiles(of, tile, thread, memory, tile);
    if (of.stage == SPOIL) return sabotage(of, tile, thread, memory, tile);
    Judge judge = {of, memory, tile, tile, 0, 0};
    judge.run(thread);
    wrong += judge.wrong;
    checksum += judge.checksum;
}

#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void meet();  // the threads of a group wait for each other, and see what was written

// Group `number` of `groups`; `done` counts its tiles.
MMAPROBE_DEVICE void run_stages(const Campaign& of, Word64* done, int thread, Word64 number, Word64 groups) {
    if (of.stage == MEASURE) {
        if (number || thread) return;
        measure(of);
        *done = of.tiles;
        return;
    }
    const Memory memory = Places{of.memory, 0}.memory(of.tiles, true);
    Word64 judged = 0, wrong = 0, checksum = 0;
    for (Word64 tile = number; tile < of.tiles; tile += groups) {
        run_stage(of, memory, tile, thread, wrong, checksum);
        meet();
        if (of.stage == MAKE) seal_tiles(thread, memory, tile);
        ++judged;
    }
    if (of.stage == JUDGE) return add_up(of, judged, wrong, checksum, thread, done);
    if (thread == 0) add(done, judged);
}
#endif
