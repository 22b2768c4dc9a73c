#include "kernels/low_precision/low_precision.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"
#include "kernels/low_precision/formats.hpp"

namespace stepladder {

using low_precision::Format;
using low_precision::LowPrecision;

namespace {

constexpr Format formats[] = {Format::bf16, Format::fp16, Format::int8, Format::binary};

struct LowPrecisionAdapter {
  using Primitive = LowPrecision;
  using Problem = low_precision::Problem;
  enum Operand : std::size_t { a, b, c };

  static std::vector<OperandInfo> operands(const Problem& p) {
    const std::size_t element = element_bytes(p.format);
    const auto count = [&](std::int64_t rows) {
      return rows * low_precision::row_bytes(p) / static_cast<std::int64_t>(element);
    };
    return {{.name = "a",
             .count = count(p.m),
             .role = Role::input,
             .element = element,
             .narrow = narrow(p.format)},
            {.name = "b",
             .count = count(p.n),
             .role = Role::input,
             .element = element,
             .narrow = narrow(p.format)},
            {.name = "c", .count = p.m * p.n, .role = Role::output, .extents = {p.m, p.n}}};
  }
  static low_precision::Operands bind(const Problem&, const std::vector<void*>& at) {
    return {.a = at[a], .b = at[b], .c = static_cast<float*>(at[c])};
  }
  static std::vector<const void*> pointers(const Problem&, const low_precision::Operands& o) {
    return {o.a, o.b, o.c};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    if (p.format == Format::binary) {
      fill_bits(p, p.m, random, contents[a]);
      fill_bits(p, p.n, random, contents[b]);
      return;
    }
    fill_numbers(p, tier, p.m * p.k, true, random, contents[a]);
    fill_numbers(p, tier, p.n * p.k, false, random, contents[b]);
  }
  static void expect(const Problem& p, Tier tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    Expected& result = expected[c];
    result.value.resize(static_cast<std::size_t>(p.m * p.n));
    std::vector<double> magnitude(result.value.size());
    low_precision::reference(p, {.a = contents[a].data(), .b = contents[b].data(), .c = nullptr},
                             result.value.data(), magnitude.data());
    if (is_of_integers(p.format)) {  // the rounding of the sum to fp32 alone
      result.bound.resize(magnitude.size());
      for (std::size_t i = 0; i < magnitude.size(); ++i)
        result.bound[i] = static_cast<float>(0x1p-24 * std::abs(result.value[i]));
      return;
    }
    bound_sums(tier, static_cast<double>(p.k), magnitude, result);
  }
  static bool has_exact_tier(const Problem&) { return true; }

 private:
  static bool is_of_integers(Format format) {
    return format == Format::int8 || format == Format::binary;
  }
  static std::size_t element_bytes(Format format) {
    return format == Format::int8 ? 1 : format == Format::binary ? 8 : 2;
  }
  // A changed element: another number, or all bits of a word, which no result of few terms hides.
  static OperandInfo::Narrow narrow(Format format) {
    switch (format) {
      case Format::bf16:
        return [](float value, std::byte* to) { put(bf16_of(value), to); };
      case Format::fp16:
        return [](float value, std::byte* to) { put(fp16_of(value), to); };
      case Format::int8:
        return [](float value, std::byte* to) {
          put(static_cast<std::int8_t>(static_cast<int>(value)), to);
        };
      case Format::binary:  // results with other bits than 0 behind k are never compared
        return [](float value, std::byte* to) {
          put(value, to);
          put(value, to + sizeof(value));
        };
    }
    return nullptr;
  }
  template <class T>
  static void put(T value, std::byte* to) {
    std::memcpy(to, &value, sizeof(T));
  }

  static void fill_bits(const Problem& p, std::int64_t rows, Random& random,
                        std::vector<std::byte>& to) {
    const std::int64_t words = low_precision::row_bytes(p) / 8;
    auto* word = reinterpret_cast<std::uint64_t*>(to.data());
    for (std::int64_t i = 0; i < rows * words; ++i) {
      const auto half = [&] { return static_cast<std::uint64_t>(random.integer(0, 0xffffffff)); };
      const std::int64_t behind = 64 * (i % words + 1) - p.k;  // bits of the word that do not count
      word[i] = (half() << 32 | half()) & ~std::uint64_t{0} >> std::max<std::int64_t>(behind, 0);
    }
  }

  // int8 in the accuracy tier: all values. Rounding them to 16 bits, which truncation would not
  // survive, leaves the values of fill_values as they are.
  static void fill_numbers(const Problem& p, Tier tier, std::int64_t count, bool is_a,
                           Random& random, std::vector<std::byte>& to) {
    std::vector<float> values(static_cast<std::size_t>(count));
    fill_values(tier, static_cast<double>(p.k), random, values.data(), count);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::byte* at = to.data() + i * element_bytes(p.format);
      if (p.format == Format::bf16) {
        put(bf16_of(values[i]), at);
      } else if (p.format == Format::fp16) {
        put(fp16_of(values[i]), at);
      } else if (tier == Tier::accuracy) {
        put(static_cast<std::uint8_t>(random.integer(0, 255)), at);
      } else {
        const int value = static_cast<int>(values[i]);
        put(static_cast<std::uint8_t>(is_a ? std::abs(value) : value), at);
      }
    }
  }
};

}  // namespace

template <>
std::vector<Access> accesses<LowPrecision>(const low_precision::Problem& p,
                                           const low_precision::Operands& o) {
  return accesses_of<LowPrecisionAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<LowPrecision>(const low_precision::Problem& p, std::string suite,
                                              std::string name) {
  ProblemInfo info = describe(LowPrecision::name, LowPrecision::plain_layout, p, std::move(suite),
                              std::move(name));
  info.precision = low_precision::name_of(p.format);
  return std::make_unique<TypedCase<LowPrecisionAdapter>>(p, std::move(info));
}

namespace {

class LowPrecisionType final : public PrimitiveType {
 public:
  const char* name() const override { return LowPrecision::name; }
  std::vector<SuiteColumn> suite_columns() const override { return {{"m"}, {"n"}, {"k"}}; }
  // One for each format.
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    constexpr std::int64_t most = 1 << 24;
    std::vector<std::unique_ptr<Case>> all;
    for (const Format format : formats)
      for (auto& one : case_of_row<LowPrecision>(row, {.m = row.integer("m", 1, most),
                                                      .n = row.integer("n", 1, most),
                                                      .k = row.integer("k", 1, most),
                                                      .format = format}))
        all.push_back(std::move(one));
    return all;
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    low_precision::Problem p{.m = random_matrix_size(random),
                             .n = random_matrix_size(random),
                             .k = random_matrix_size(random)};
    if (random.integer(0, 9) == 0) p.k = random.integer(1000, 12000);  // several blocks
    p.format = formats[random.integer(0, 3)];
    return random_case_of<LowPrecision>(p);
  }
};

}  // namespace

const PrimitiveType& low_precision_type() {
  static const LowPrecisionType type;
  return type;
}

}  // namespace stepladder
