// D = A B of 16-bit floats with f32 sums, by TMA and wgmma (sm_90a): A (M, K), B (K, N) and D (M, N) by rows.
//
// Of three warpgroups the first one, one thread of it, copies tiles of A and B into a ring of STAGES slots of shared
// memory; two multiply.  Together they have a tile of D, upper and lower half (cooperative), or tile after tile in turn
// (pingpong).  CTAs are persistent: each goes through its units of work, a tile and the steps of K that are added there.
// A tile of several units is written in parts, which whoever comes last adds in the order of K.
//
// `produce` and `consume` are written from the protocol that is explored (toolchain/nvidia/products/ring.py); the numbers,
// `tile_at`, `describe_a`, `describe_b` and `multiply` stand before this text, too.

using Byte = unsigned char;
using Word32 = unsigned int;
using Word64 = unsigned long long;

struct alignas(64) TensorMap {
    Word64 words[16];
};

struct Product {
    TensorMap a, b;
    float* d;
    float* parts;  // PARTS x M x N, where a tile has more than one
    Word32* arrived;  // TILES x CONSUMERS, zeros
};

constexpr int GROUP = 128, CONSUMERS = 2, THREADS = (1 + CONSUMERS) * GROUP, WARPS = 4;
constexpr int LINES = PINGPONG ? TILE_M : TILE_M / CONSUMERS, BLOCKS = LINES / 64;
constexpr int BYTES_A = TILE_M * TILE_K * 2, BYTES_B = TILE_K * TILE_N * 2, SLOT = BYTES_A + BYTES_B;
constexpr int STEPS = (K + TILE_K - 1) / TILE_K, LAST_DEPTH = (K - (STEPS - 1) * TILE_K + 15) / 16 * 16;
constexpr int BOX_N = 64;
constexpr int FULL = STAGES * SLOT, EMPTY = FULL + 8 * STAGES, TURN = EMPTY + 8 * STAGES,
              ALL_CAME = TURN + 8 * CONSUMERS;
constexpr Word32 MOST_TRIES = 1u << 24;
constexpr Word64 WAIT_RAN_OUT = Word64(1) << 63;

// Slot of the ring, and the parity of the round that it is in.
struct Place {
    Word32 slot, phase;
    MMAPROBE_DEVICE void skip(int steps) {
        slot += steps;
        phase ^= slot / STAGES & 1;
        slot %= STAGES;
    }
};

// Barriers in shared memory.  A wait ends when the phase of this parity is over; after MOST_TRIES it says so and goes on.
MMAPROBE_DEVICE void begin_barrier(Word32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

MMAPROBE_DEVICE void await(Word32 barrier, Word32 parity, Word64* done) {
    Word32 over = 0;
    for (Word32 tries = 0; !over; ++tries) {
        asm volatile(
            "{ .reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }"
            : "=r"(over)
            : "r"(barrier), "r"(parity)
            : "memory");
        if (tries == MOST_TRIES) {
            atomicOr(done, WAIT_RAN_OUT);
            return;
        }
    }
}

MMAPROBE_DEVICE void expect(Word32 barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

MMAPROBE_DEVICE void arrive(Word32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

MMAPROBE_DEVICE void copy_box(Word32 to, const TensorMap* map, int x, int y, Word32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

MMAPROBE_DEVICE void copy(const Product& of, Word32 memory, Word32 slot, int m, int n, int k) {
    const Word32 barrier = memory + FULL + 8 * slot, to = memory + slot * SLOT;
    copy_box(to, &of.a, k, m, barrier);
#pragma unroll
    for (int at = 0; at < TILE_N; at += BOX_N) copy_box(to + BYTES_A + at * TILE_K * 2, &of.b, n + at, k, barrier);
}

using Sums = float[BLOCKS][TILE_N / 2];

MMAPROBE_DEVICE void fence_sums(Sums& sums) {
#pragma unroll
    for (int i = 0; i < BLOCKS; ++i)
#pragma unroll
        for (int j = 0; j < TILE_N / 2; ++j) asm volatile("" : "+f"(sums[i][j])::"memory");
}

// Begins to add the products of a slot, those of its first 16 along K first; `last`: of the last step of K.
MMAPROBE_DEVICE void begin(Sums& sums, Word32 memory, Word32 slot, int consumer, bool last) {
    const int line = PINGPONG ? 0 : consumer * LINES;
    const Word32 a = memory + slot * SLOT + line * TILE_K * 2, b = memory + slot * SLOT + BYTES_A;
    fence_sums(sums);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < TILE_K; k += 16) {
        if (k >= LAST_DEPTH && last) break;
#pragma unroll
        for (int i = 0; i < BLOCKS; ++i)
            multiply(sums[i], describe_a(a + i * 64 * TILE_K * 2 + k * 2), describe_b(b + k * BOX_N * 2));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until all but the last LEFT slots that were begun are added.
template <int LEFT>
MMAPROBE_DEVICE void finish(Sums& sums) {
    fence_sums(sums);
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
    fence_sums(sums);
}

// A tile, the steps [first, last) of its K, and which one of its parts that is.
struct Unit {
    int tile, first, last, part, parts;
};

// The units of a CTA in order: of whole tiles or equal shares of them, every WORKERS-th; or (STREAM) an equal share of all
// steps of all tiles.  `next` is where it goes on.
MMAPROBE_DEVICE bool unit_at(Word64& next, Unit& of) {
    if (STREAM) {
        constexpr Word64 ALL = Word64(TILES) * STEPS;
        const Word64 end = (blockIdx.x + 1) * ALL / WORKERS;
        if (next >= end) return false;
        of.tile = next / STEPS, of.first = next % STEPS;
        const Word64 begun = Word64(of.tile) * STEPS;
        of.last = end - begun < STEPS ? int(end - begun) : STEPS;
        const int before = ((begun + 1) * WORKERS - 1) / ALL, behind = ((begun + STEPS) * WORKERS - 1) / ALL;
        of.part = blockIdx.x - before, of.parts = behind - before + 1;
        next = begun + of.last;
        return true;
    }
    if (next >= Word64(TILES) * PARTS) return false;
    of.tile = next / PARTS, of.part = next % PARTS, of.parts = PARTS;
    of.first = of.part * SHARE;
    of.last = of.first + SHARE < STEPS ? of.first + SHARE : STEPS;
    next += WORKERS;
    return true;
}

MMAPROBE_DEVICE Word64 first_unit() {
    return STREAM ? Word64(blockIdx.x) * (Word64(TILES) * STEPS) / WORKERS : Word64(blockIdx.x);
}

MMAPROBE_PROTOCOL

// Two neighbours of a row of D, or of the part of it that `to` is.
template <class Each>
MMAPROBE_DEVICE void each_pair(int m, int n, const Each& each) {
    const int thread = threadIdx.x % GROUP, row = m + thread / 32 * 16 + thread % 32 / 4, column = n + thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < BLOCKS; ++i)
#pragma unroll
        for (int j = 0; j < TILE_N / 4; ++j) {
            const int at_m = row + 64 * i + j % 2 * 8, at_n = column + j / 2 * 8;
            if (at_m < M && at_n < N) each(i, 2 * j, (long long)at_m * N + at_n);
        }
}

MMAPROBE_DEVICE void store(float* to, const Sums& sums, int m, int n) {
    each_pair(m, n, [&](int i, int j, long long at) {
        *reinterpret_cast<float2*>(to + at) = make_float2(sums[i][j], sums[i][j + 1]);
    });
}

// The parts of a warpgroup's corner of D, added in order: ((P0 + P1) + P2) + ...
MMAPROBE_DEVICE void store_joined(const Product& of, int m, int n, int parts) {
    each_pair(m, n, [&](int, int, long long at) {
        float2 sum = __ldcg(reinterpret_cast<const float2*>(of.parts + at));
#pragma unroll 1
        for (int part = 1; part < parts; ++part) {
            const float2 next = __ldcg(reinterpret_cast<const float2*>(of.parts + part * (long long)M * N + at));
            sum.x = __fadd_rn(sum.x, next.x), sum.y = __fadd_rn(sum.y, next.y);
        }
        *reinterpret_cast<float2*>(of.d + at) = sum;
    });
}

// Whether all parts of a warpgroup's corner of a tile have come: one thread asks, and tells the others.
MMAPROBE_DEVICE bool all_came(const Product& of, Byte* memory, const Unit& unit, int consumer) {
    volatile int* told = reinterpret_cast<int*>(memory + ALL_CAME) + consumer;
    __threadfence();
    asm volatile("bar.sync %0, %1;" ::"r"(1 + consumer), "n"(GROUP) : "memory");
    if (threadIdx.x % GROUP == 0)
        *told = atomicAdd(of.arrived + unit.tile * CONSUMERS + (PINGPONG ? 0 : consumer), 1u) + 1 == unit.parts;
    asm volatile("bar.sync %0, %1;" ::"r"(1 + consumer), "n"(GROUP) : "memory");
    __threadfence();
    return *told;
}

// What a warpgroup has added goes to D, or to its part; of a tile's parts the last one that comes joins them.
MMAPROBE_DEVICE void put(const Product& of, Byte* memory, Sums& sums, const Unit& unit, int consumer, int m, int n,
                         Word64* done) {
    bool stored = true;
    if (unit.parts == 1) {
        store(of.d, sums, m, n);
    } else {
        store(of.parts + unit.part * (long long)M * N, sums, m, n);
        stored = all_came(of, memory, unit, consumer);
        if (stored) store_joined(of, m, n, unit.parts);
    }
    if (stored && threadIdx.x % GROUP == 0) atomicAdd(done, Word64(1));
}

// `done` counts the corners of D that were stored: of each tile one a warpgroup that has it.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    mmaprobe_run(const __grid_constant__ Product of, Word64* done) {
    extern __shared__ __align__(1024) Byte bytes[];
    const Word32 memory = __cvta_generic_to_shared(bytes);
    const int group = threadIdx.x / GROUP;
    if (threadIdx.x == 0) {
        for (int slot = 0; slot < STAGES; ++slot) {
            begin_barrier(memory + FULL + 8 * slot, FULL_ARRIVALS);
            begin_barrier(memory + EMPTY + 8 * slot, EMPTY_ARRIVALS);
        }
        for (int consumer = 0; consumer < CONSUMERS; ++consumer)
            begin_barrier(memory + TURN + 8 * consumer, TURN_ARRIVALS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    Place at = {0, 0};
    Word64 next = first_unit();
    Unit unit;
    int m, n;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            while (unit_at(next, unit)) {
                tile_at(unit.tile, m, n);
                produce(of, memory, at, m * TILE_M, n * TILE_N, unit, done);
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = group - 1;
    for (int turn = 0; unit_at(next, unit); ++turn) {
        if (PINGPONG && turn % CONSUMERS != consumer) {
            at.skip(unit.last - unit.first);
            continue;
        }
        Sums sums = {};
        consume(sums, memory, at, consumer, turn / CONSUMERS, unit, done);
        tile_at(unit.tile, m, n);
        put(of, bytes, sums, unit, consumer, m * TILE_M + (PINGPONG ? 0 : consumer * LINES), n * TILE_N, done);
    }
}
