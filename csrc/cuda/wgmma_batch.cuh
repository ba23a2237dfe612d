// The kernel of a batch for wgmma: its items from memory through the instruction and back.
#ifndef MMAPROBE_HOST
// `done` counts the items that were stored.  The unit reads shared memory through the async proxy: what the threads
// wrote is fenced before it, and nothing is written again before all of them have waited for it.
extern "C" __global__ void __launch_bounds__(THREADS) mmaprobe_run(Operands given, Word64* done) {
    __shared__ alignas(ALIGNMENT) Byte memory[START_B + MatrixB::bytes];
    const int thread = threadIdx.x;
    const Word32 start = __cvta_generic_to_shared(memory);
    for (Word64 item = blockIdx.x; item < given.items; item += gridDim.x) {
        Registers of;
        fill_all(given, item, thread, memory);
        load_all(given, item, thread, of);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        multiply(of, describe_a(start), describe_b(start));
        store_all(given, item, thread, of);
        __syncthreads();
        if (thread == 0) atomicAdd(done, Word64(1));
    }
}
#endif
