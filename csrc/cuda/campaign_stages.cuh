// The entry of a campaign in stages.
#ifndef MMAPROBE_HOST
extern "C" __global__ void __launch_bounds__(Shape::threads* Shape::groups) mmaprobe_run(Campaign of, Word64* done) {
    const int thread = threadIdx.x % Shape::threads, group = threadIdx.x / Shape::threads;
    const Word64 number = Word64(blockIdx.x) * Shape::groups + group;
    run_stages(of, done, thread, number, Word64(gridDim.x) * Shape::groups);
}
#endif
