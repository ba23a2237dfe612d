// What a campaign asks of an NVIDIA GPU.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE Word32 multiprocessor() {
    Word32 number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}
MMAPROBE_DEVICE Word64 add(Word64* at, Word64 more) { return atomicAdd(at, more); }
#endif
