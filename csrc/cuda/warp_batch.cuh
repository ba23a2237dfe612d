// The kernel of a batch whose items a warp runs.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void meet() { __syncwarp(); }
MMAPROBE_DEVICE void count(Word64* done, Word64 stored) { atomicAdd(done, stored); }

extern "C" __global__ void mmaprobe_run(Operands given, Word64* done) {
    const Word64 warps = blockDim.x / 32;
    run_items(given, done, threadIdx.x % 32, blockIdx.x * warps + threadIdx.x / 32, gridDim.x * warps);
}
#endif
