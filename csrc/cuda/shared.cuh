// Matrices in shared memory, as wgmma and tcgen05 read them.
//
// A rendered source has one struct for each (toolchain/nvidia/shared_matrices.py): Code, its lines (rows of A, columns of B) by depth
// (along k), which element of an item's array is (line, k), which byte it starts at, and its descriptor.  A cell is the
// fewest elements along k that fill whole bytes; one thread writes all of it.

// An operand that does not lie in shared memory.
struct AbsentMatrix {
    using Code = Byte;
    static constexpr int lines = 0, depth = 1, bits = 8, cell = 1, bytes = 0, elements = 0;
    static constexpr bool along_k = true;
    static MMAPROBE_DEVICE int at(int, int) { return 0; }
    static MMAPROBE_DEVICE int address(int, int) { return 0; }
    static MMAPROBE_DEVICE Word64 describe(Word32) { return 0; }
};

// The bytes that one thread of `threads` writes, from `memory` on; neighbours read neighbours of the array.  The lines
// are those of the array from `first` on, of a pair of CTAs the part of one.
template <class Matrix>
MMAPROBE_DEVICE void fill(const void* array, Word64 item, int thread, int threads, Byte* memory, int first = 0) {
    const typename Matrix::Code* codes = static_cast<const typename Matrix::Code*>(array) + item * Matrix::elements;
    constexpr int deep = Matrix::depth / Matrix::cell, cells = Matrix::lines * deep;
    for (int number = thread; number < cells; number += threads) {
        const int line = Matrix::along_k ? number / deep : number % Matrix::lines;
        const int k = (Matrix::along_k ? number % deep : number / Matrix::lines) * Matrix::cell;
        Word64 value = 0;
#pragma unroll
        for (int e = 0; e < Matrix::cell; ++e)
            value |= Word64(codes[Matrix::at(first + line, k + e)]) << (e * Matrix::bits);
        Byte* place = memory + Matrix::address(line, k);
#pragma unroll
        for (int byte = 0; byte < Matrix::cell * Matrix::bits / 8; ++byte) place[byte] = Byte(value >> (8 * byte));
    }
}
