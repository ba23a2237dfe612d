// What a campaign's kernel does of wgmma: a group is a CTA, its matrices lie first in shared memory.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE Byte* aligned(Byte* shared) {
    const Word32 start = __cvta_generic_to_shared(shared);
    return shared + (ALIGNMENT - start % ALIGNMENT) % ALIGNMENT;
}
MMAPROBE_DEVICE void meet() { __syncthreads(); }

MMAPROBE_DEVICE void multiply_tiles(const Memory& memory, Byte* matrices, int thread) {
    Registers of;
    const Operands given = batch_of(memory, Shape::tiles / Shape::blocks);
    const Word32 start = __cvta_generic_to_shared(matrices);
    fill_all(given, 0, thread, matrices);
    load_all(given, 0, thread, of);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    multiply(of, describe_a(start), describe_b(start));
    store_all(given, 0, thread, of);
}
#endif
