// What a program must be before anything reads it: every row within it, every register, lane and scale block there.
//
// models/program.py makes no other; a program that anything else made is refused here and never read past its end.
#pragma once
#include <stdexcept>

#include "model/program.hpp"

namespace mmaprobe {

constexpr int64_t MOST_ORDERED = 256;  // lanes of an order at most: fused::MOST_K

class ProgramCheck {
    const int64_t* words;
    int64_t size;
    baseline::Header header;

    static void need(bool fine) {
        if (!fine) throw std::invalid_argument("not a program of this engine version");
    }
    int64_t operator[](baseline::Header::Column column) const { return header[column]; }
    // Items first .. first + count - 1 lie in the program.
    void within(int64_t first, int64_t count) const {
        need(first >= baseline::Header::SIZE && count >= 0 && first <= size && count <= size - first);
    }
    void encode(int64_t at, bool optional = false) const {
        using Row = baseline::EncodeRow;
        if (optional && at == baseline::ABSENT) return;
        within(at, Row::SIZE);
        const Row row{words + at};
        need(row[Row::bits] >= 1 && row[Row::padding] >= 0 && row[Row::bits] + row[Row::padding] <= 64);
        need(row[Row::fraction_bits] >= 0 && row[Row::fraction_bits] < 63);
        const int64_t random = (*this)[baseline::Header::random], taken = row[Row::random_bits];
        need(taken >= 0 && taken <= (random == baseline::ABSENT ? 0 : words[random + baseline::OperandRow::bits]));
    }
    void operand(int64_t at, bool optional = false) const {
        using Row = baseline::OperandRow;
        if (optional && at == baseline::ABSENT) return;
        within(at, Row::SIZE);
        const Row row{words + at};
        const int64_t bytes = row[Row::bytes];
        need(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
        need(row[Row::bits] >= 1 && row[Row::padding] >= 0 && row[Row::bits] + row[Row::padding] <= 8 * bytes);
        need(row[Row::fraction_bits] >= 0 && row[Row::fraction_bits] < 63);
    }
    // Parts of floats that are no wider than a significand, few of each operand.
    void split(int64_t at) const {
        using Row = baseline::SplitRow;
        within(at, Row::SIZE + 2 * (*this)[baseline::Header::products]);
        need(words[at + Row::fraction_bits] >= 1 && words[at + Row::fraction_bits] < 62);
        for (int64_t i = 0; i < 2 * (*this)[baseline::Header::products]; ++i)
            need(words[at + Row::SIZE + i] >= 0 && words[at + Row::SIZE + i] < 4);
    }
    void a_register(int64_t number) const { need(number >= 0 && number < (*this)[baseline::Header::registers]); }
    void lane(int64_t number) const { need(number >= 0 && number < (*this)[baseline::Header::k]); }
    void product(int64_t number) const {
        need(number >= 0);
        lane(number / (*this)[baseline::Header::products]);
    }

    void rows() const {
        using H = baseline::Header;
        const bool scaled = (*this)[H::scale] != baseline::ABSENT;
        operand((*this)[H::a]);
        operand((*this)[H::b]);
        operand((*this)[H::c], true);
        operand((*this)[H::scale], true);
        operand((*this)[H::random], true);
        if ((*this)[H::random] != baseline::ABSENT) need(words[(*this)[H::random] + baseline::OperandRow::bits] <= 32);
        encode((*this)[H::d]);
        encode((*this)[H::product_encode], true);
        need((*this)[H::k] >= 1 && (*this)[H::k] <= 1 << 24);
        need(scaled ? (*this)[H::scale_size] >= 1 && (*this)[H::k] % (*this)[H::scale_size] == 0
                    : (*this)[H::scale_where] == baseline::UNSCALED);
        need((*this)[H::products] >= 1 && (*this)[H::products] <= 64);
        if ((*this)[H::split] == baseline::ABSENT)
            need((*this)[H::products] == 1);
        else
            split((*this)[H::split]);
        need((*this)[H::registers] >= 0 && (*this)[H::registers] <= size);
        within((*this)[H::priority], (*this)[H::priority_count]);
        for (int64_t i = 0; i < (*this)[H::priority_count]; ++i) {
            const int64_t name = words[(*this)[H::priority] + i];
            need(name == baseline::NAME_C ? (*this)[H::c] != baseline::ABSENT
                                          : name >= 0 && name % 3 != baseline::NAME_C);
            if (name != baseline::NAME_C) lane(name / 3);
        }
        if ((*this)[H::kernel] > baseline::INTEGER_SATURATES) kernel_rules();
    }
    // The longest row of rules that the kernel may read, and the rows that it names.
    void kernel_rules() const {
        using H = baseline::Header;
        const int64_t at = (*this)[H::rules];
        switch ((*this)[H::kernel]) {
            case baseline::FUSED: {
                const baseline::FusedRow row{words + at};
                within(at, baseline::FusedRow::SIZE);
                encode(row[baseline::FusedRow::encode]);
                operand(row[baseline::FusedRow::carry]);
                return divides(row[baseline::FusedRow::step]);
            }
            case baseline::CHAIN: return within(at, baseline::ChainRow::SIZE);
            case baseline::TWO_STAGE:
                within(at, baseline::TwoStageRow::SIZE);
                operand(baseline::TwoStageRow{words + at}[baseline::TwoStageRow::carry]);
                return divides(baseline::TwoStageRow{words + at}[baseline::TwoStageRow::step]);
            case baseline::GROUPED:
                within(at, baseline::GroupedRow::SIZE);
                return divides(baseline::GroupedRow{words + at}[baseline::GroupedRow::group]);
            case baseline::EXACT_SUM:
                within(at, baseline::ExactRow::SIZE);
                operand(baseline::ExactRow{words + at}[baseline::ExactRow::carry]);
                return divides(baseline::ExactRow{words + at}[baseline::ExactRow::step]);
            case baseline::PAIRS:
                within(at, baseline::PairsRow::SIZE);
                return divides(baseline::PairsRow{words + at}[baseline::PairsRow::step]);
            case baseline::SHORT_SUMS: return short_sums(at);
            case baseline::FLUSHED_CHAIN: {
                const auto bytes = [&](int64_t row) { return words[row + baseline::OperandRow::bytes]; };
                need((*this)[H::c] != baseline::ABSENT && bytes((*this)[H::c]) == 4);
                need(bytes((*this)[H::a]) == 2 && bytes((*this)[H::b]) == 2 && out_bytes() == 4);
                within(at, baseline::FlushedChainRow::SIZE);
                return lanes(baseline::FlushedChainRow{words + at}[baseline::FlushedChainRow::order]);
            }
            case baseline::LATE_C: return late_c(at);
            case baseline::TREE: return tree(at);
            default: return;
        }
    }
    // A program of fused sums for the same A and B, which makes what C and d are.
    void late_c(int64_t at) const {
        using H = baseline::Header;
        using Row = baseline::LateCRow;
        within(at, Row::SIZE);
        const Row row{words + at};
        const int64_t sums = row[Row::sums];
        within(sums, H::SIZE);
        within(sums, words[sums + H::words]);
        const int64_t* const inner = words + sums;
        need(inner[H::kernel] == baseline::FUSED);
        const ProgramCheck checked(inner, inner[H::words]);
        const auto bytes = [](const int64_t* in, int64_t of) { return in[of + baseline::OperandRow::bytes]; };
        need(inner[H::k] == (*this)[H::k] && inner[H::c] == baseline::ABSENT && inner[H::scale] == baseline::ABSENT);
        for (const auto operand : {H::a, H::b}) need(bytes(inner, inner[operand]) == bytes(words, (*this)[operand]));
        need((*this)[H::c] != baseline::ABSENT && (*this)[H::k] <= MOST_ORDERED);
        const int64_t width = bytes(words, (*this)[H::c]);
        need((width == 2 || width == 4) && width == out_bytes() && width == checked.out_bytes());
        lanes(row[Row::order]);
    }
    // K lanes in some order.
    void lanes(int64_t at) const {
        within(at, (*this)[baseline::Header::k]);
        for (int64_t i = 0; i < (*this)[baseline::Header::k]; ++i) lane(words[at + i]);
    }
    // Operands of a width that their result has, or half of 32 bits; operations that keep within their stack.
    void tree(int64_t at) const {
        using H = baseline::Header;
        using Row = baseline::TreeRow;
        using baseline::Opcode;
        const int64_t out = out_bytes(), c = (*this)[H::c];
        const auto bytes = [&](int64_t row) { return words[row + baseline::OperandRow::bytes]; };
        for (const int64_t factor : {bytes((*this)[H::a]), bytes((*this)[H::b])})
            need(factor == out || (factor == 2 && out == 4));
        need(out >= 2 && (*this)[H::k] <= baseline::TREE_LANES && (c == baseline::ABSENT || bytes(c) == out));
        within(at, Row::SIZE);
        const Row row{words + at};
        need(row[Row::rounding] >= 0 && row[Row::rounding] < 4);
        for (int place = 0; place < 3; ++place) need(((*this)[H::fma_order] >> 2 * place & 3) != 0);
        within(row[Row::operations], row[Row::count]);
        int64_t depth = 0;
        for (int64_t i = 0; i < row[Row::count]; ++i) {
            const int64_t word = words[row[Row::operations] + i];
            need(word >= 0);
            lane(word / baseline::TREE_LANE);
            switch (Opcode(word % baseline::TREE_ENCODED)) {
                case Opcode::PRODUCT:
                case Opcode::LOAD_C:
                case Opcode::ZERO: need(++depth <= baseline::TREE_DEPTH); break;
                case Opcode::FMA: need(depth >= 1); break;
                case Opcode::ADD: need(--depth >= 1); break;
                case Opcode::STORE: need(depth-- == 1); break;
                default: need(false);
            }
        }
        need(depth == 0);
    }
    void short_sums(int64_t at) const {
        using Row = baseline::ShortRow;
        within(at, Row::SIZE);
        const Row row{words + at};
        divides(row[Row::step]);
        need(row[Row::parts] >= 0 && (row[Row::parts] == 0 || row[Row::step] % row[Row::parts] == 0));
        lanes(row[Row::order]);
    }
    void divides(int64_t step) const { need(step >= 1 && (*this)[baseline::Header::k] % step == 0); }

    void code() const {
        using H = baseline::Header;
        using baseline::Opcode;
        const int64_t end = (*this)[H::code_end];
        int64_t at = (*this)[H::code];
        need(end >= at);
        within(at, end - at);
        while (at < end) {
            const Opcode opcode = Opcode(words[at++]);
            const auto row = [&](int64_t columns) { need(columns <= end - at); };
            switch (opcode) {
                case Opcode::PRODUCT: {
                    row(baseline::ProductRow::SIZE);
                    a_register(baseline::ProductRow{words + at}[baseline::ProductRow::to]);
                    product(baseline::ProductRow{words + at}[baseline::ProductRow::lane]);
                    at += baseline::ProductRow::SIZE;
                    break;
                }
                case Opcode::LOAD_C: need((*this)[H::c] != baseline::ABSENT); [[fallthrough]];
                case Opcode::ZERO:
                    row(baseline::LoadRow::SIZE);
                    a_register(baseline::LoadRow{words + at}[baseline::LoadRow::to]);
                    at += baseline::LoadRow::SIZE;
                    break;
                case Opcode::FMA: {
                    using Row = baseline::FmaRow;
                    row(Row::SIZE);
                    const Row r{words + at};
                    for (const auto column : {Row::to, Row::x, Row::y}) a_register(r[column]);
                    product(r[Row::lane]);
                    encode(r[Row::encode]);
                    at += Row::SIZE;
                    break;
                }
                case Opcode::ADD: {
                    using Row = baseline::AddRow;
                    row(Row::SIZE);
                    const Row r{words + at};
                    for (const auto column : {Row::to, Row::x, Row::y}) a_register(r[column]);
                    encode(r[Row::encode]);
                    at += Row::SIZE;
                    break;
                }
                case Opcode::SUM: at = sum(at, end); break;
                case Opcode::CONVERT:
                    row(baseline::ConvertRow::SIZE);
                    a_register(baseline::ConvertRow{words + at}[baseline::ConvertRow::to]);
                    encode(baseline::ConvertRow{words + at}[baseline::ConvertRow::encode]);
                    at += baseline::ConvertRow::SIZE;
                    break;
                case Opcode::SETTLE: at = settle(at, end); break;
                case Opcode::STORE:
                    row(baseline::StoreRow::SIZE);
                    a_register(baseline::StoreRow{words + at}[baseline::StoreRow::x]);
                    encode(baseline::StoreRow{words + at}[baseline::StoreRow::encode]);
                    at += baseline::StoreRow::SIZE;
                    break;
                default: need(false);
            }
        }
    }
    // A sum and its terms; where the next operation begins.
    int64_t sum(int64_t at, int64_t end) const {
        using H = baseline::Header;
        using Row = baseline::SumRow;
        need(Row::SIZE <= end - at);
        const Row r{words + at};
        a_register(r[Row::to]);
        encode(r[Row::encode], true);
        if (r[Row::frame] != baseline::ABSENT) a_register(r[Row::frame]);
        need(r[Row::count] >= 0 && r[Row::count] <= (end - at - Row::SIZE) / baseline::TermRow::SIZE);
        if (r[Row::group] != baseline::ABSENT)
            need((*this)[H::scale] != baseline::ABSENT && r[Row::group] >= 0 &&
                 r[Row::group] < (*this)[H::k] / (*this)[H::scale_size]);
        at += Row::SIZE;
        for (int64_t i = 0; i < r[Row::count]; ++i, at += baseline::TermRow::SIZE)
            a_register(baseline::TermRow{words + at}[baseline::TermRow::of]);
        return at;
    }
    // The registers and lanes of a step whose NaN results are settled; where the next operation begins.
    int64_t settle(int64_t at, int64_t end) const {
        using Row = baseline::SettleRow;
        need(Row::SIZE <= end - at);
        const Row r{words + at};
        for (const auto column : {Row::x, Row::acc, Row::scratch}) a_register(r[column]);
        at += Row::SIZE;
        need(r[Row::count] >= 0 && r[Row::count] <= end - at);
        for (int64_t i = 0; i < r[Row::count]; ++i) product(words[at + i]);
        return at + r[Row::count];
    }

public:
    ProgramCheck(const int64_t* program, int64_t length) : words(program), size(length), header{program} {
        using H = baseline::Header;
        need(size >= H::SIZE && (*this)[H::version] == baseline::PROGRAM_VERSION && (*this)[H::words] == size);
        rows();
        code();
    }
    // Bytes of one result: the container of a code of d.
    int64_t out_bytes() const {
        using Row = baseline::EncodeRow;
        const Row d{words + (*this)[baseline::Header::d]};
        const int64_t bits = d[Row::bits] + d[Row::padding];
        return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
    }
};

}  // namespace mmaprobe
