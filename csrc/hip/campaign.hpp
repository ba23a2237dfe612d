// What a campaign asks of an AMD GPU.
#ifndef MMAPROBE_HOST
// `width` bits of a hardware register from bit `first` on.  Sources: LLVM 22, AMDGPU, hwreg and sendmsg; the ISA guides
// of MI200, MI300, RDNA3 and RDNA4.
template <int id, int first, int width>
MMAPROBE_DEVICE Word32 hardware() {
    return __builtin_amdgcn_s_getreg(id | first << 6 | (width - 1) << 11);
}

MMAPROBE_DEVICE Word64 add(Word64* at, Word64 more) {
    return __hip_atomic_fetch_add(at, more, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// A group is a wave.  Its lanes run side by side; the fence keeps the compiler from moving or remembering memory.
MMAPROBE_DEVICE void meet() {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
}

// This wave's number in its workgroup, and in the launch: the same in all lanes, and the compiler is told so.
MMAPROBE_DEVICE int own_group() {
    return __builtin_amdgcn_readfirstlane(__builtin_amdgcn_workitem_id_x() / Shape::threads);
}
MMAPROBE_DEVICE Word64 own_number() { return __builtin_amdgcn_workgroup_id_x() * Word64(Shape::groups) + own_group(); }
#endif

// The number of a compute unit, by shader engine and array and, where a GPU is of several dies, by die.
#if defined(__GFX9__)
// 4 bits of the compute unit and 1 of its shader array, then the engine.
constexpr int place = 4, die = 20;  // HW_ID, XCC_ID: names that HIP defines
#if defined(__gfx942__) || defined(__gfx950__) || defined(__gfx9_4_generic__)
MMAPROBE_DEVICE Word32 multiprocessor() { return hardware<die, 0, 3>() << 7 | hardware<place, 8, 7>(); }
#else
MMAPROBE_DEVICE Word32 multiprocessor() { return hardware<place, 8, 8>(); }
#endif
#elif defined(__AMDGCN__)
// Two of the four SIMDs of a workgroup processor are a compute unit.
constexpr int place = 23;  // HW_ID1
MMAPROBE_DEVICE Word32 inside_engine() {
    return hardware<place, 16, 1>() << 5 | hardware<place, 10, 4>() << 1 | hardware<place, 9, 1>();
}
#if defined(__GFX12__)
// A message's answer: the engine in the lowest bits, the die from bit 16 on.
MMAPROBE_DEVICE Word32 multiprocessor() {
    const Word32 engine = __builtin_amdgcn_s_sendmsg_rtn(0x87);
    return (engine >> 16 & 7) << 7 | (engine & 7) << 6 | inside_engine();
}
#else
MMAPROBE_DEVICE Word32 multiprocessor() { return hardware<place, 18, 3>() << 6 | inside_engine(); }
#endif
#endif
