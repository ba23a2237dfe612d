// wmma, whose fragments are opaque: A, B and C go through shared memory, where wmma.load reads them in rows or columns,
// and D comes back through it.  A warp runs one item at a time.  `multiply` is the instruction with its loads and its
// store, rendered; the matrices' structs are those of shared.cuh with the byte of a warp's memory that they start at.

constexpr int LANES = 32;

MMAPROBE_DEVICE void fill_all(const Operands& given, Word64 item, int lane, Byte* memory) {
    fill<MatrixA>(given.a, item, lane, LANES, memory + MatrixA::start);
    fill<MatrixB>(given.b, item, lane, LANES, memory + MatrixB::start);
    fill<MatrixC>(given.c, item, lane, LANES, memory + MatrixC::start);
}

// The way back of `fill`, of elements that are whole bytes.
template <class Matrix>
MMAPROBE_DEVICE void drain(void* array, Word64 item, int thread, int threads, const Byte* memory) {
    typename Matrix::Code* codes = static_cast<typename Matrix::Code*>(array) + item * Matrix::elements;
    for (int number = thread; number < Matrix::elements; number += threads) {
        const int line = number / Matrix::depth, k = number % Matrix::depth;
        Word64 value = 0;
#pragma unroll
        for (int byte = 0; byte < Matrix::bits / 8; ++byte) {
            value |= Word64(memory[Matrix::address(line, k) + byte]) << (8 * byte);
        }
        codes[Matrix::at(line, k)] = typename Matrix::Code(value);
    }
}

MMAPROBE_DEVICE void drain_all(const Operands& given, Word64 item, int lane, const Byte* memory) {
    drain<MatrixD>(given.d, item, lane, LANES, memory + MatrixD::start);
}

#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void multiply(Word32 start);

// `done` counts the items that were stored.
extern "C" __global__ void __launch_bounds__(LANES* WARPS) mmaprobe_run(Operands given, Word64* done) {
    __shared__ alignas(ALIGNMENT) Byte memory[WARPS][WARP_BYTES];
    const int lane = threadIdx.x % LANES, own = threadIdx.x / LANES;
    const Word32 start = __cvta_generic_to_shared(memory[own]);
    for (Word64 item = Word64(blockIdx.x) * WARPS + own; item < given.items; item += Word64(gridDim.x) * WARPS) {
        fill_all(given, item, lane, memory[own]);
        __syncwarp();
        multiply(start);
        __syncwarp();
        drain_all(given, item, lane, memory[own]);
        __syncwarp();
        if (lane == 0) atomicAdd(done, Word64(1));
    }
}
#endif
