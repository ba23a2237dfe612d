// The entry of a campaign's fused kernel.
#ifndef MMAPROBE_HOST
extern "C" __attribute__((global, amdgpu_flat_work_group_size(Shape::threads* Shape::groups,
                                                              Shape::threads* Shape::groups))) void
mmaprobe_run(Campaign of, Word64* done) {
    __attribute__((shared, aligned(16))) static Byte shared[Shape::bytes * Shape::groups];
    const Word64 groups = __builtin_amdgcn_grid_size_x() / Shape::threads;
    const int thread = __builtin_amdgcn_workitem_id_x() % Shape::threads;
    run_fused(of, done, shared + own_group() * Shape::bytes, thread, own_number(), groups);
}
#endif
