// The entry of a campaign in stages.
#ifndef MMAPROBE_HOST
extern "C" __attribute__((global, amdgpu_flat_work_group_size(Shape::threads* Shape::groups,
                                                              Shape::threads* Shape::groups))) void
mmaprobe_run(Campaign of, Word64* done) {
    const Word64 groups = __builtin_amdgcn_grid_size_x() / Shape::threads;
    run_stages(of, done, __builtin_amdgcn_workitem_id_x() % Shape::threads, own_number(), groups);
}
#endif
