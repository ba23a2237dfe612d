// The kernel of a batch, but for what a vendor calls a thread: items from memory through the instruction and back.
// Group `own` of `groups` takes every groups-th item; `done` counts the items that were stored.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void meet();                              // the lanes of a group wait for each other
MMAPROBE_DEVICE void count(Word64* done, Word64 stored);  // adds, whatever other groups do meanwhile

MMAPROBE_DEVICE void run_items(const Operands& given, Word64* done, int lane, Word64 own, Word64 groups) {
    for (Word64 item = own * ITEMS; item < given.items; item += groups * ITEMS) {
        Registers of;
        load_all(given, item, lane, of);
        multiply(of);
        store_all(given, item, lane, of);
        const Word64 stored = given.items - item < ITEMS ? given.items - item : ITEMS;
        meet();
        if (lane == 0) count(done, stored);
    }
}
#endif
