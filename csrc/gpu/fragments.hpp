// What every template shares: an operand's elements between an array in memory and the registers of a thread.
//
// A rendered source starts with one struct for each operand (toolchain/fragments.py): Code and Word, the number of
// slots, registers and elements, whether a place (lane, slot) is held, and which element it holds.  The same text
// compiles for the host with MMAPROBE_HOST, where a test runs it lane by lane.
#ifndef MMAPROBE_FRAGMENTS_HPP
#define MMAPROBE_FRAGMENTS_HPP

#ifdef MMAPROBE_HOST
#define MMAPROBE_DEVICE inline
#elif defined(__HIP__)
#define MMAPROBE_DEVICE __attribute__((device, always_inline)) inline
#else
#define MMAPROBE_DEVICE __device__ __forceinline__
#endif

typedef unsigned char Byte;
typedef unsigned int Word32;
typedef unsigned long long Word64;

// The arrays of a launch: the items of a batch one behind the other, an element an item of its array.
struct Operands {
    const void* a;
    const void* b;
    const void* c;
    const void* scale_a;
    const void* scale_b;
    const void* metadata;
    void* d;
    Word64 items;
};

// An operand that the instruction lacks.
struct Absent {
    using Code = Byte;
    using Word = Word32;
    static constexpr int slots = 0, bits = 32, width = 32, shift = 0, registers = 1, register_bits = 32, elements = 0,
                         items = 1;
    static MMAPROBE_DEVICE bool held(int, int) { return false; }
    static MMAPROBE_DEVICE int at(int, int) { return 0; }
};

// Whether an element lies beyond the array, of which the last items from `first` on are left: where several items lie in
// the registers side by side.  On the host always asked: a test's wrong layout must not touch other memory.
template <class Operand>
MMAPROBE_DEVICE bool beyond(int at, Word64 items, Word64 first) {
#ifdef MMAPROBE_HOST
    constexpr bool asked = true;
#else
    constexpr bool asked = Operand::items > 1;
#endif
    return asked && Word64(at) >= (items - first) * Operand::elements;
}

// One element into the bits from `bit` on; where elements do not fill whole registers it goes on in the next.
template <class Operand>
MMAPROBE_DEVICE void put(typename Operand::Word* registers, int bit, typename Operand::Code code) {
    using Word = typename Operand::Word;
    constexpr int wide = Operand::register_bits;
    const int low = bit % wide + Operand::shift;
    registers[bit / wide] |= Word(Word64(code) << low);
    if constexpr (wide % Operand::bits != 0) {
        if (low + Operand::bits > wide) registers[bit / wide + 1] |= Word(Word64(code) >> (wide - low));
    }
}

// The same way back, with whatever stands above the element.
template <class Operand>
MMAPROBE_DEVICE Word64 take(const typename Operand::Word* registers, int bit) {
    constexpr int wide = Operand::register_bits;
    const int low = bit % wide + Operand::shift;
    Word64 value = registers[bit / wide] >> low;
    if constexpr (wide % Operand::bits != 0) {
        if (low + Operand::bits > wide) value |= Word64(registers[bit / wide + 1]) << (wide - low);
    }
    return value;
}

// The registers of one lane: slot s occupies `bits` bits from bit s * bits on; what lies beyond the array is 0.
template <class Operand>
MMAPROBE_DEVICE void load(const void* array, Word64 items, Word64 first, int lane, typename Operand::Word* registers) {
    const typename Operand::Code* codes = static_cast<const typename Operand::Code*>(array) + first * Operand::elements;
#pragma unroll
    for (int r = 0; r < Operand::registers; ++r) registers[r] = 0;
#pragma unroll
    for (int slot = 0; slot < Operand::slots; ++slot) {
        const int at = Operand::at(lane, slot);
        if (!Operand::held(lane, slot) || beyond<Operand>(at, items, first)) continue;
        put<Operand>(registers, slot * Operand::bits, codes[at]);
    }
}

// The same way back; what lies beyond the array is dropped.
template <class Operand>
MMAPROBE_DEVICE void store(void* array, Word64 items, Word64 first, int lane, const typename Operand::Word* registers) {
    typename Operand::Code* codes = static_cast<typename Operand::Code*>(array) + first * Operand::elements;
    const Word64 mask = ~Word64(0) >> (64 - Operand::width);
#pragma unroll
    for (int slot = 0; slot < Operand::slots; ++slot) {
        const int at = Operand::at(lane, slot);
        if (!Operand::held(lane, slot) || beyond<Operand>(at, items, first)) continue;
        codes[at] = typename Operand::Code(take<Operand>(registers, slot * Operand::bits) & mask);
    }
}

#endif
