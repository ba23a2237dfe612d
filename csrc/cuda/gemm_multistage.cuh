// D = A B of 16-bit floats with f32 sums, by mma.sync (sm_80 and later): A (M, K), B (K, N) and D (M, N) by rows.
//
// A CTA of four warps has a tile of D.  Tiles of A and B go through a ring of STAGES slots in shared memory: cp.async
// writes slot (j + STAGES - 1) mod STAGES while slot j mod STAGES is read.  Each element of D has one accumulator, to
// which the products are added in steps of 16 along K, the first one first; what lies beyond M, N and K is read as zeros.
// The numbers, `address_a`, `address_b`, `tile_at` and `multiply` stand before this text (toolchain/nvidia/products).

using Byte = unsigned char;
using Word16 = unsigned short;
using Word32 = unsigned int;
using Word64 = unsigned long long;

struct Product {
    const Word16* a;
    const Word16* b;
    Word32* d;
};

constexpr int THREADS = 128;
constexpr int BYTES_A = TILE_M * TILE_K * 2, SLOT = BYTES_A + TILE_K * TILE_N * 2;
constexpr int WHOLE = K / TILE_K, STEPS_K = (K + TILE_K - 1) / TILE_K;
constexpr int WARP_M = TILE_M / 2, WARP_N = TILE_N / 2, ROWS = WARP_M / 16, COLUMNS = WARP_N / 8;

// 16 bytes from `from` to shared memory, or 16 zeros.
MMAPROBE_DEVICE void copy(Word32 to, const Word16* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

// A tile of `LINES` rows of `LENGTH` elements, from (row, column) of a matrix of rows x columns on.
template <int LINES, int LENGTH, int ROWS_THERE, int COLUMNS_THERE, int (*ADDRESS)(int, int)>
MMAPROBE_DEVICE void copy_tile(Word32 to, const Word16* matrix, int row, int column) {
    constexpr int CHUNKS = LENGTH / 8;
#pragma unroll
    for (int number = 0; number < LINES * CHUNKS / THREADS; ++number) {
        const int chunk = number * THREADS + threadIdx.x, line = chunk / CHUNKS, at = chunk % CHUNKS * 8;
        const bool there = row + line < ROWS_THERE && column + at < COLUMNS_THERE;
        const Word16* from = there ? matrix + (long long)(row + line) * COLUMNS_THERE + column + at : matrix;
        copy(to + ADDRESS(line, at), from, there);
    }
}

MMAPROBE_DEVICE void copy_step(Word32 memory, const Product& of, int m, int n, int step) {
    const Word32 slot = memory + step % STAGES * SLOT;
    if (step < STEPS_K) {
        copy_tile<TILE_M, TILE_K, M, K, address_a>(slot, of.a, m, step * TILE_K);
        copy_tile<TILE_K, TILE_N, K, N, address_b>(slot + BYTES_A, of.b, step * TILE_K, n);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

struct Fragments {
    Word32 a[ROWS][4], b[COLUMNS][2];
};

// The fragments of 16 products from `k` on, for the warp whose part of the tile begins at (m, n).
MMAPROBE_DEVICE void load(Fragments& to, Word32 slot, int m, int n, int k) {
    const int lane = threadIdx.x % 32, low = lane % 16, high = lane / 16 * 8;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to.a[i][0]), "=r"(to.a[i][1]), "=r"(to.a[i][2]), "=r"(to.a[i][3])
                     : "r"(slot + address_a(m + 16 * i + low, k + high))
                     : "memory");
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to.b[j][0]), "=r"(to.b[j][1]), "=r"(to.b[j + 1][0]), "=r"(to.b[j + 1][1])
                     : "r"(slot + BYTES_A + address_b(k + low, n + 8 * j + high))
                     : "memory");
}

using Sums = float[ROWS][COLUMNS][4];

// The products of one slot, DEPTH of them along K, when its copies have come; the slot before it is filled meanwhile.
template <int DEPTH>
MMAPROBE_DEVICE void add_slot(Sums& sums, Word32 memory, const Product& of, int m, int n, int step) {
    const int warp = threadIdx.x / 32, warp_m = warp / 2 * WARP_M, warp_n = warp % 2 * WARP_N;
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    copy_step(memory, of, m, n, step + STAGES - 1);
    const Word32 slot = memory + step % STAGES * SLOT;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        Fragments read;
        load(read, slot, warp_m, warp_n, k);
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) multiply(sums[i][j], read.a[i], read.b[j]);
    }
}

MMAPROBE_DEVICE void store(const Product& of, const Sums& sums, int m, int n) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = m + warp / 2 * WARP_M + lane / 4, column = n + warp % 2 * WARP_N + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int at_m = row + 16 * i + 8 * half, at_n = column + 8 * j;
                if (at_m < M && at_n < N)
                    *reinterpret_cast<uint2*>(of.d + (long long)at_m * N + at_n) = make_uint2(
                        __float_as_uint(sums[i][j][2 * half]), __float_as_uint(sums[i][j][2 * half + 1]));
            }
}

// `done` counts the tiles that were stored.
extern "C" __global__ void __launch_bounds__(THREADS) mmaprobe_run(Product of, Word64* done) {
    extern __shared__ __align__(1024) Byte bytes[];
    const Word32 memory = __cvta_generic_to_shared(bytes);
    int m, n;
    tile_at(blockIdx.x, m, n);
    m *= TILE_M, n *= TILE_N;
    Sums sums = {};
#pragma unroll
    for (int step = 0; step < STAGES - 1; ++step) copy_step(memory, of, m, n, step);
#pragma unroll 1
    for (int step = 0; step < WHOLE; ++step) add_slot<TILE_K>(sums, memory, of, m, n, step);
    if (WHOLE < STEPS_K) add_slot<(K % TILE_K + 15) / 16 * 16>(sums, memory, of, m, n, WHOLE);
    store(of, sums, m, n);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(done, Word64(1));
}
