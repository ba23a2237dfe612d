// The fused campaign: a group of threads makes the vectors of a tile, runs the instruction on them, evaluates the model
// of every output and compares.  Nothing leaves the multiprocessor but counts and the places of mismatches.
//
// The rendered source gives Shape (m, n, k, live, chunks, scales of a row, tiles and threads of a group, the blocks of the
// instruction, the types of the arrays' items), DOMAIN (what the generators must know), and the datapath compiled in
// (compiled::Model).
// A tile is Shape::side vectors from its first one on: row i of A is the a of vector i, column j of B the b of vector
// j, and C[i, j] the c of vector i where i + j is even, else of vector j (generators/tiles.py).

namespace generators = mmaprobe::MMAPROBE_BUILD::generators;
using Code = mmaprobe::MMAPROBE_BUILD::u64;
using Model = mmaprobe::MMAPROBE_BUILD::compiled::Model;
using mmaprobe::MMAPROBE_BUILD::compiled::begin_rounding;
using mmaprobe::MMAPROBE_BUILD::compiled::end_rounding;

constexpr int EXAMPLES = 64, MULTIPROCESSORS = 1024;
constexpr Word32 PRIME = 0x9E3779B1;

// What a vendor says (csrc/cuda/campaign.cuh, csrc/hip/campaign.hpp): the number of the multiprocessor that a thread runs
// on, below MULTIPROCESSORS; what was at a place, to which is added whatever other threads do meanwhile.
MMAPROBE_DEVICE Word32 multiprocessor();
MMAPROBE_DEVICE Word64 add(Word64* at, Word64 more);

// A mismatch: the tile's number in the launch, row << 16 | column, where it was computed, and both codes.
struct Example {
    Word64 tile;
    Word32 place, multiprocessor;
    Word64 d, expected;
};

// What a launch finds.  `checksum`: the sum over all outputs of the expected code times an odd number made of its place.
struct Found {
    Word64 mismatches, checksum;
    Word64 vectors[MULTIPROCESSORS], wrong[MULTIPROCESSORS];
    Example examples[EXAMPLES];
};

// What a launch does: `tiles` tiles of a family, the first of them at vector `start`.  Output 0 of tile `sabotaged` is
// made wrong in its lowest bit: a comparison that never fails is none.  The last two are for launches in stages.
struct Campaign {
    Word64 seed, start, tiles, sabotaged;
    Word32 stream;
    int family;
    Found* found;
    Byte* memory;
    int stage;
};

// The vectors of some tiles: as arrays of items, which the instruction's loads read, and decoded.
struct Memory {
    Model::Row* rows;
    Model::Column* columns;
    Shape::A* a;
    Shape::B* b;
    Shape::Scale *scale_a, *scale_b;
    Byte* metadata;
    Shape::C *addends, *c;
    Shape::D* d;
};

// Memory that begins somewhere, array behind array.
struct Places {
    Byte* base;
    Word64 used;

    template <class Item>
    MMAPROBE_DEVICE Item* take(Word64 count) {
        Item* at = reinterpret_cast<Item*>(base + used);
        used += (count * sizeof(Item) + 15) / 16 * 16;
        return at;
    }
    // Of `tiles` tiles; D goes where C was, or behind it (`apart`).
    MMAPROBE_DEVICE Memory memory(Word64 tiles, bool apart) {
        Memory made;
        made.rows = take<Model::Row>(tiles * Shape::m);
        made.columns = take<Model::Column>(tiles * Shape::n);
        made.a = take<Shape::A>(tiles * Shape::m * Shape::live);
        made.b = take<Shape::B>(tiles * Shape::k * Shape::n);
        made.scale_a = take<Shape::Scale>(tiles * Shape::m * Shape::scales);
        made.scale_b = take<Shape::Scale>(tiles * Shape::n * Shape::scales);
        made.metadata = take<Byte>(tiles * Shape::m * Shape::chunks);
        made.addends = take<Shape::C>(tiles * Shape::side);
        const Word64 before = used;
        made.c = take<Shape::C>(Shape::has_c * tiles * Shape::m * Shape::n);
        const Word64 after = used;
        if (!apart) used = before;
        made.d = take<Shape::D>(tiles * Shape::m * Shape::n);
        if (used < after) used = after;
        return made;
    }
};

// Where the items of one vector go.
struct Put {
    const Memory& memory;
    Word64 tile;
    int vector;

    MMAPROBE_DEVICE bool wants_a() const { return vector < Shape::m; }
    MMAPROBE_DEVICE bool wants_b() const { return vector < Shape::n; }
    MMAPROBE_DEVICE Word64 row() const { return tile * Shape::m + vector; }
    MMAPROBE_DEVICE Word64 column() const { return tile * Shape::n + vector; }
    MMAPROBE_DEVICE void a(int k, Word64 code) {
        memory.a[row() * Shape::live + k] = Shape::A(code);
        Model::put_a(memory.rows[row()], k, code);
    }
    MMAPROBE_DEVICE void b(int k, Word64 code) {
        memory.b[(tile * Shape::k + k) * Shape::n + vector] = Shape::B(code);
        Model::put_b(memory.columns[column()], k, code);
    }
    MMAPROBE_DEVICE void c(Word64 code) { memory.addends[tile * Shape::side + vector] = Shape::C(code); }
    MMAPROBE_DEVICE void scale_a(int g, Word64 code) {
        memory.scale_a[row() * Shape::scales + g] = Shape::Scale(code);
        Model::put_scale_a(memory.rows[row()], g, code);
    }
    MMAPROBE_DEVICE void scale_b(int g, Word64 code) {
        memory.scale_b[(tile * Shape::scales + g) * Shape::n + vector] = Shape::Scale(code);
        Model::put_scale_b(memory.columns[column()], g, code);
    }
    MMAPROBE_DEVICE void metadata(int chunk, Word32 item) {
        memory.metadata[row() * Shape::chunks + chunk] = Byte(item);
        Model::put_metadata(memory.rows[row()], chunk, item);
    }
};

// Phase 1: the vectors of the group's tiles from number `first` of the launch on, into those of the memory from `at` on.
MMAPROBE_DEVICE void make_tiles(const Campaign& of, Word64 first, int thread, const Memory& memory, Word64 at) {
    constexpr int vectors = Shape::tiles * Shape::side;
    constexpr int parts = Shape::threads > vectors ? Shape::threads / vectors : 1;
    constexpr int makers = vectors < Shape::threads ? vectors : Shape::threads;
    const generators::Stream stream = {of.seed, of.stream};
    for (int number = thread % makers; number < vectors; number += makers) {
        if (thread / makers >= parts || first + number / Shape::side >= of.tiles) continue;
        Put put = {memory, at + number / Shape::side, number % Shape::side};
        const Word64 index = of.start + first * Shape::side + Word64(number);
        generators::make_vector(DOMAIN, of.family, stream, index, thread / makers, parts, put);
    }
}

// Phase 2, after a barrier: C of the tiles, and what the model makes of whole rows and columns.
MMAPROBE_DEVICE void seal_tiles(int thread, const Memory& memory, Word64 at) {
    constexpr int rows = Shape::tiles * Shape::m, columns = Shape::tiles * Shape::n, outputs = rows * Shape::n;
    for (int number = thread; number < rows; number += Shape::threads) Model::seal(memory.rows[at * Shape::m + number]);
    for (int number = thread; number < columns; number += Shape::threads)
        Model::seal(memory.columns[at * Shape::n + number]);
    for (int number = thread; Shape::has_c && number < outputs; number += Shape::threads) {
        const int row = number / Shape::n % Shape::m, column = number % Shape::n;
        const Word64 first = (at + number / (Shape::m * Shape::n)) * Shape::side;
        memory.c[at * Shape::m * Shape::n + number] = memory.addends[first + ((row + column) % 2 ? column : row)];
    }
}

// Phase 3 is the instruction's: `count` tiles as a batch that its loads read.
MMAPROBE_DEVICE Operands batch_of(const Memory& memory, Word64 count) {
    return {memory.a, memory.b, memory.c, memory.scale_a, memory.scale_b, memory.metadata, memory.d, count};
}

// Phase 4, after D was stored: every output against the model.
struct Judge {
    const Campaign& of;
    const Memory& memory;
    Word64 first, at;  // of the group's tiles: their number in the launch, and in the memory
    Word32 wrong;
    Word64 checksum;

    MMAPROBE_DEVICE void compare(int tile, int row, int column, Word64 expected) {
        const int place = row * Shape::n + column;
        const Shape::D d = memory.d[(at + tile) * (Shape::m * Shape::n) + place], right = Shape::D(expected);
        const Word32 number = Word32(first + tile) * Word32(Shape::m * Shape::n) + Word32(place);
        checksum += Word64(right) * (number * PRIME | 1);
        if (d != right) report(tile, row, column, d, right);
    }
    MMAPROBE_DEVICE void report(int tile, int row, int column, Word64 d, Word64 expected) {
        ++wrong;
        const Word64 number = add(&of.found->mismatches, Word64(1));
        if (number >= EXAMPLES) return;
        of.found->examples[number] = {first + tile, Word32(row << 16 | column), multiprocessor(), d, expected};
    }
    MMAPROBE_DEVICE Word64 addend(Word64 tile, int row, int column) const {
        return Shape::has_c ? Word64(memory.addends[tile * Shape::side + ((row + column) % 2 ? column : row)]) : 0;
    }
    MMAPROBE_DEVICE void run(int thread) {
        begin_rounding<Model::ROUNDING>();
        compare_all(thread);
        end_rounding<Model::ROUNDING>(wrong, checksum);
    }
    // Threads go along the upper half of the rows, four outputs at a time: of two rows and two columns; or tile by tile
    // where one has one output.
    MMAPROBE_DEVICE void compare_all(int thread) {
        constexpr int side = Shape::m == 1 ? 1 : 2, half = Shape::m / side, outputs = side * side;
        constexpr int rows = Shape::tiles * half, pairs = Shape::n / side;
#pragma unroll 1
        for (int number = thread; number < rows * pairs; number += Shape::threads) {
            const int tile = number % rows / half, row = number % half, column = number / rows * side;
            if (first + tile >= of.tiles) continue;
            const auto* lines = memory.rows + (at + tile) * Shape::m + row;
            const auto* columns = memory.columns + (at + tile) * Shape::n + column;
            Code c[4], d[4];
#pragma unroll
            for (int i = 0; i < outputs; ++i) c[i] = addend(at + tile, row + i / 2 * half, column + i % 2);
            if constexpr (side == 1)
                d[0] = Model::evaluate(lines[0], columns[0], c[0]);
            else
                Model::evaluate_four(lines[0], lines[half], columns[0], columns[1], c, d);
#pragma unroll
            for (int i = 0; i < outputs; ++i) compare(tile, row + i / 2 * half, column + i % 2, d[i]);
        }
    }
};
static_assert((Shape::n % 2 == 0 && Shape::m % 2 == 0) || Shape::side == 1, "outputs are compared by four, or alone");

// Between the instruction and the judgement: the output that is to be found wrong.
MMAPROBE_DEVICE void sabotage(const Campaign& of, Word64 first, int thread, const Memory& memory, Word64 at) {
    if (thread == 0 && of.sabotaged - first < Word64(Shape::tiles))
        memory.d[(at + of.sabotaged - first) * (Shape::m * Shape::n)] ^= 1;
}

// How many of the group's tiles are of the launch.
MMAPROBE_DEVICE Word64 tiles_here(const Campaign& of, Word64 first) {
    return of.tiles - first < Word64(Shape::tiles) ? of.tiles - first : Word64(Shape::tiles);
}

// What a group of threads found, added to the launch's.
MMAPROBE_DEVICE void add_up(const Campaign& of, Word64 judged, Word64 wrong, Word64 checksum, int thread,
                            Word64* done) {
    const Word32 where = multiprocessor() < MULTIPROCESSORS ? multiprocessor() : MULTIPROCESSORS - 1;
    add(&of.found->checksum, checksum);
    if (wrong) add(&of.found->wrong[where], wrong);
    if (thread) return;
    add(&of.found->vectors[where], judged * Word64(Shape::m * Shape::n));
    add(done, judged);
}
