// The entry of a campaign's fused kernel.
#ifndef MMAPROBE_HOST
extern "C" __global__ void __launch_bounds__(Shape::threads* Shape::groups) mmaprobe_run(Campaign of, Word64* done) {
    extern __shared__ __align__(16) Byte shared[];
    const int thread = threadIdx.x % Shape::threads, group = threadIdx.x / Shape::threads;
    const Word64 number = Word64(blockIdx.x) * Shape::groups + group;
    run_fused(of, done, aligned(shared) + group * Shape::bytes, thread, number, Word64(gridDim.x) * Shape::groups);
}
#endif
