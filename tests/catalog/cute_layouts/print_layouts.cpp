// CuTe's answers to the questions that print_layouts.py writes, a line each: number, tab, what CuTe prints.
#include <cstdio>

#include <cute/atom/mma_traits_sm70.hpp>
#include <cute/atom/mma_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/layout.hpp>
#include <cute/swizzle_layout.hpp>

using namespace cute;

template <class Function>
struct Offsets {
    Function function;
    int count;
};

/// Every offset of a layout or swizzle, in order of its number.
template <class Function>
Offsets<Function> offsets(Function function, int count) {
    return {function, count};
}

template <class Function>
void show(const Offsets<Function>& of) {
    for (int i = 0; i < of.count; ++i) std::printf("%s%d", i ? " " : "", int(of.function(i)));
}

template <class Answer>
void show(const Answer& answer) {
    cute::print(answer);
}

#define QUESTION(number, ...) \
    std::printf("%d\t", number); \
    show(__VA_ARGS__); \
    std::printf("\n")

int main() {
#include "questions.inc"
}
