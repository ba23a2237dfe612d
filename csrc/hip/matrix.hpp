// Operands as the compiler's builtins take them: vectors of its own types, which nobody has to spell.
//
// Bits<N> turns into any type of N registers, so that the prototype of a builtin says what its operands are; one that
// takes more or fewer registers than the catalog says does not compile.
// One value of 16 bits lies in the low half of a register.
#ifndef MMAPROBE_HOST
using Half = unsigned short;

template <int registers>
struct Bits {
    Word32 words[registers];

    template <class Vector>
    MMAPROBE_DEVICE operator Vector() const {
        if constexpr (registers == 1 && sizeof(Vector) == sizeof(Half)) {
            return __builtin_bit_cast(Vector, Half(words[0]));
        } else {
            static_assert(sizeof(Vector) == sizeof(words), "the builtin takes other registers than the catalog says");
            return __builtin_bit_cast(Vector, words);
        }
    }
};

// What inline assembly takes in so many registers.
template <int registers>
struct Typed {
    using Type = Word32 __attribute__((ext_vector_type(registers)));
};
template <>
struct Typed<1> {
    using Type = Word32;
};
template <int registers>
using Vector = typename Typed<registers>::Type;

// All registers of an operand, those above `used` zero: builtins take the widest of several formats.
template <int registers, int used>
MMAPROBE_DEVICE Bits<registers> bits(const Word32 (&words)[used]) {
    static_assert(used <= registers, "more registers than the builtin takes");
    Bits<registers> made = {};
#pragma unroll
    for (int r = 0; r < used; ++r) made.words[r] = words[r];
    return made;
}

// A word of which the compiler knows nothing: it would shift a set of indices at once, and pick the first set instead.
MMAPROBE_DEVICE Word32 opaque(Word32 word) {
    asm volatile("" : "+v"(word));
    return word;
}

template <int registers, class Vector>
MMAPROBE_DEVICE void keep(Word32 (&words)[registers], const Vector& vector) {
    if constexpr (registers == 1 && sizeof(Vector) == sizeof(Half)) {
        words[0] = __builtin_bit_cast(Half, vector);
    } else {
        static_assert(sizeof(Vector) == sizeof(words), "the builtin gives other registers than the catalog says");
        const Bits<registers> made = __builtin_bit_cast(Bits<registers>, vector);
#pragma unroll
        for (int r = 0; r < registers; ++r) words[r] = made.words[r];
    }
}
#endif
