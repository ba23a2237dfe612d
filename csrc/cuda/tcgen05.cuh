// tcgen05.mma in all its forms: dense, sparse, block scaled, weights stationary; of one CTA or of a pair.  128 threads
// a CTA run one item at a time: A and B go to shared memory (A to tensor memory where the form says so), C, scales and
// metadata to tensor memory, one thread multiplies, D comes back.  `multiply` is the instruction, rendered; where it
// uses what a collector holds, `prime` fills the collector first.  Each phase is a function for one thread.
//
// Order of operations: PTX ISA 9.4, "tcgen05 memory consistency model", and the tcgen05 code of CUTLASS.

constexpr int THREADS = 128, LANES = 128;

// The tensor memory of a thread's lane, and its 32-bit columns.
#ifdef MMAPROBE_HOST
typedef Word32* TensorLane;
inline void tensor_store(TensorLane lane, int column, Word32 word) { lane[column] = word; }
inline void tensor_load(TensorLane lane, int column, Word32 (&words)[8]) {
    for (int i = 0; i < 8; ++i) words[i] = lane[column + i];
}
#else
typedef Word32 TensorLane;
MMAPROBE_DEVICE void tensor_store(TensorLane lane, int column, Word32 word) {
    __syncwarp();
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(lane + column), "r"(word) : "memory");
}
MMAPROBE_DEVICE void tensor_load(TensorLane lane, int column, Word32 (&words)[8]) {
    __syncwarp();
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
        "tcgen05.wait::ld.sync.aligned;"
        : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]), "=r"(words[4]), "=r"(words[5]),
          "=r"(words[6]), "=r"(words[7])
        : "r"(lane + column)
        : "memory");
}
#endif

// The columns of an operand in one lane, from `column` on; `lane` counts those of a pair's second CTA from 128.
template <class Operand>
MMAPROBE_DEVICE void put(const void* array, Word64 item, int lane, TensorLane tensor, int column) {
    const typename Operand::Code* codes = static_cast<const typename Operand::Code*>(array) + item * Operand::elements;
    constexpr int wide = 32 / Operand::bits, columns = (Operand::slots + wide - 1) / wide;
    for (int c = 0; c < columns; ++c) {
        Word32 word = 0;
        for (int e = 0; e < wide; ++e) {
            const int slot = c * wide + e;
            if (slot < Operand::slots && Operand::held(lane, slot))
                word |= Word32(codes[Operand::at(lane, slot)]) << (e * Operand::bits + Operand::shift);
        }
        tensor_store(tensor, column + c, word);
    }
}

// D the same way back; one element a column.
MMAPROBE_DEVICE void read_d(const Operands& given, Word64 item, int lane, TensorLane tensor) {
    static_assert(D::bits == 32 && D::slots % 8 == 0, "whole groups of columns");
    D::Code* codes = static_cast<D::Code*>(given.d) + item * D::elements;
    for (int c = 0; c < D::slots; c += 8) {
        Word32 words[8];
        tensor_load(tensor, COLUMN_D + c, words);
        for (int i = 0; i < 8; ++i)
            if (D::held(lane, c + i)) codes[D::at(lane, c + i)] = D::Code(words[i]);
    }
}

// Padding between the elements of a matrix is 0.
MMAPROBE_DEVICE void clear(int thread, Byte* shared) {
    for (int i = thread; i < SHARED_BYTES; i += THREADS) shared[i] = 0;
}

MMAPROBE_DEVICE void write_operands(const Operands& given, Word64 item, int part, int thread, Byte* shared,
                                    TensorLane tensor) {
    const int lane = part * LANES + thread;
    fill<MatrixA>(given.a, item, thread, THREADS, shared + SHARED_A, part * MatrixA::lines);
    fill<MatrixB>(given.b, item, thread, THREADS, shared + SHARED_B, part * MatrixB::lines);
    put<A>(given.a, item, lane, tensor, COLUMN_A);
    put<ScaleA>(given.scale_a, item, lane, tensor, COLUMN_SCALE_A);
    put<ScaleB>(given.scale_b, item, lane, tensor, COLUMN_SCALE_B);
    put<Metadata>(given.metadata, item, lane, tensor, COLUMN_METADATA);
}

MMAPROBE_DEVICE void write_c(const Operands& given, Word64 item, int part, int thread, TensorLane tensor) {
    put<C>(given.c, item, part * LANES + thread, tensor, COLUMN_D);
}

// What the instruction is given: the address of tensor memory, and the matrix descriptors.
struct Issue {
    Word32 tensor;
    Word64 a;
    Word64 b;
};

MMAPROBE_DEVICE Issue issue_of(Word32 tensor, Word32 shared) {
    return {tensor, MatrixA::describe(shared + SHARED_A), MatrixB::describe(shared + SHARED_B)};
}

#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void multiply(const Issue& of);
MMAPROBE_DEVICE void prime(const Issue& of);

constexpr int WAITS = 1 << 20;  // of at most about a microsecond

MMAPROBE_DEVICE Word32 address_of(const void* shared) { return Word32(__cvta_generic_to_shared(shared)); }

// The CTA's number in its pair.
MMAPROBE_DEVICE int part_of_pair() {
    Word32 rank = 0;
    if (CTAS == 2) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of a pair wait for each other.
MMAPROBE_DEVICE void meet() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

MMAPROBE_DEVICE void synchronise() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    if (CTAS == 2)
        meet();
    else
        __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// What was written to shared and to tensor memory is there for the instruction.
MMAPROBE_DEVICE void publish() {
    __syncwarp();
    asm volatile("tcgen05.wait::st.sync.aligned;\nfence.proxy.async.shared::cta;" ::: "memory");
    synchronise();
}

// The barrier, of a pair that of each CTA, learns that all that was issued is done.
MMAPROBE_DEVICE void commit(Word32 barrier) {
    const unsigned short both = 3;
    asm volatile("tcgen05.commit." MMAPROBE_GROUP ".mbarrier::arrive::one.shared::cluster" MMAPROBE_SIGNALLED
                 ";" ::"r"(barrier),
                 "h"(both)
                 : "memory");
}

// Whether what was committed came to its end in time, in both CTAs of a pair.
MMAPROBE_DEVICE bool finished(Word32 barrier, Word32 parity, volatile int* other_late) {
    Word32 done = 0;
    for (int i = 0; i < WAITS && !done; ++i)
        asm volatile(
            "{\n.reg .pred done;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2, 1000;\n"
            "selp.b32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    int late = __syncthreads_or(!done);
    if (CTAS == 2) {
        if (threadIdx.x == 0)
            asm volatile(
                "{\n.reg .b32 there;\n"
                "mapa.shared::cluster.u32 there, %0, %1;\n"
                "st.shared::cluster.u32 [there], %2;\n}" ::"r"(address_of(const_cast<const int*>(other_late))),
                "r"(1 - part_of_pair()), "r"(late)
                : "memory");
        synchronise();
        late |= *other_late;
    }
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    return !late;
}

MMAPROBE_DEVICE void allocate(Word32 base, Word32 barrier) {
    if (threadIdx.x / 32 == 0) {
        asm volatile("tcgen05.alloc." MMAPROBE_GROUP ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(base), "r"(COLUMNS)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit." MMAPROBE_GROUP ".sync.aligned;");
    }
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(barrier)
                     : "memory");
}

MMAPROBE_DEVICE void release(Word32 tensor) {
    if (threadIdx.x / 32 == 0)
        asm volatile("tcgen05.dealloc." MMAPROBE_GROUP ".sync.aligned.b32 %0, %1;" ::"r"(tensor), "r"(COLUMNS));
}

// `done` counts the items that were stored; bit 63 says that a wait came to its bound.
extern "C" __global__ void __launch_bounds__(THREADS) MMAPROBE_CLUSTER mmaprobe_run(Operands given, Word64* done) {
    extern __shared__ Byte dynamic[];
    __shared__ Word64 barrier;
    __shared__ Word32 tensor;
    __shared__ int other_late;
    Byte* shared = dynamic + (-address_of(dynamic) & (ALIGNMENT - 1));
    const int thread = threadIdx.x, part = part_of_pair();
    const bool leads = part == 0 && thread == 0;
    if (CTAS == 2) meet();  // an allocation is the pair's: there is none before both CTAs are (so DeepGEMM and CUTLASS)
    allocate(address_of(&tensor), address_of(&barrier));
    clear(thread, shared);
    synchronise();
    const TensorLane lane = tensor | thread / 32 * 32 << 16;
    const Issue of = issue_of(tensor, address_of(shared));
    Word32 waited = 0;
    bool hung = false;
    for (Word64 item = blockIdx.x / CTAS; item < given.items && !hung; item += gridDim.x / CTAS) {
        write_operands(given, item, part, thread, shared, lane);
        if (PRIMED) {
            publish();
            if (leads) {
                prime(of);
                commit(address_of(&barrier));
            }
            hung = !finished(address_of(&barrier), waited++ & 1, &other_late);
            if (hung) break;
        }
        write_c(given, item, part, thread, lane);
        publish();
        if (leads) {
            multiply(of);
            commit(address_of(&barrier));
        }
        hung = !finished(address_of(&barrier), waited++ & 1, &other_late);
        if (hung) break;
        read_d(given, item, part * LANES + thread, lane);
        synchronise();
        if (leads) atomicAdd(done, 1ull);
    }
    if (hung && leads) atomicOr(done, 1ull << 63);
    synchronise();
    release(tensor);
}
#endif
