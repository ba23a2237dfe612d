// The kernel of a batch whose items a wave of LANES lanes runs; WAVES waves are a workgroup.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void meet() { __builtin_amdgcn_wave_barrier(); }
MMAPROBE_DEVICE void count(Word64* done, Word64 stored) {
    __hip_atomic_fetch_add(done, stored, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Matrix instructions take every lane, whatever EXEC says: a wave's number is the same for all of its lanes, and the
// compiler is told so.
extern "C" __attribute__((global, amdgpu_flat_work_group_size(LANES* WAVES, LANES* WAVES))) void mmaprobe_run(
    Operands given, Word64* done) {
    const int thread = __builtin_amdgcn_workitem_id_x();
    const Word64 own = __builtin_amdgcn_readfirstlane(thread / LANES);
    const Word64 groups = __builtin_amdgcn_grid_size_x() / LANES;
    run_items(given, done, thread % LANES, __builtin_amdgcn_workgroup_id_x() * Word64(WAVES) + own, groups);
}
#endif
