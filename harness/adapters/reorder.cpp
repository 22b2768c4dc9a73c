#include "kernels/reorder/reorder.hpp"

#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"
#include "kernels/reorder/formats.hpp"

namespace stepladder {

using reorder::Format;
using reorder::Reorder;

namespace {

// Numbers of a format in memory.
template <class Element>
Element* elements(std::vector<std::byte>& content) {
  return reinterpret_cast<Element*>(content.data());
}

struct ReorderAdapter {
  using Primitive = Reorder;
  using Problem = reorder::Problem;
  enum Operand : std::size_t { x, y };

  static std::vector<OperandInfo> operands(const Problem& p) {
    OperandInfo to = operand("y", p.y_count(), Role::output, p.to_format);
    to.extents = image_extents(p.to, p.batch, p.channels, p.height, p.width);
    return {operand("x", p.x_count(), Role::input, p.from_format), to};
  }
  static reorder::Operands bind(const Problem&, const std::vector<void*>& at) {
    return {.x = at[x], .y = at[y]};
  }
  static std::vector<const void*> pointers(const Problem&, const reorder::Operands& o) {
    return {o.x, o.y};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    if (p.from_format != Format::fp32) return fill_codes(p, random, contents[x]);
    float* values = floats(contents, x);
    fill_values(tier, 1, random, values, p.x_count());
    if (p.changes_format() && tier == Tier::accuracy) fill_between(p, random, values);
    clear_padding(p.from, p.batch, p.channels, p.pixels(), values);
  }
  static void expect(const Problem& p, Tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    expected[y].value.resize(static_cast<std::size_t>(p.y_count()));
    expected[y].bound.assign(expected[y].value.size(), 0.0F);
    reorder::reference(p, contents[x].data(), expected[y].value.data());
  }
  static bool has_exact_tier(const Problem&) { return true; }

 private:
  static OperandInfo operand(const char* name, std::int64_t count, Role role, Format format) {
    OperandInfo info{.name = name,
                     .count = count,
                     .role = role,
                     .element = static_cast<std::size_t>(reorder::bytes_of(format))};
    switch (format) {
      case Format::fp32:
        break;
      case Format::bf16:
        set_conversions<Bf16>(info);
        break;
      case Format::fp16:
        set_conversions<Fp16>(info);
        break;
      case Format::int8:
        set_conversions<std::int8_t>(info);
        break;
    }
    return info;
  }
  template <class Narrow>
  static void set_conversions(OperandInfo& info) {
    info.narrow = [](float value, std::byte* to) {
      const auto narrow = reorder::converted<Narrow>(value);
      std::memcpy(to, &narrow, sizeof(narrow));
    };
    info.widen = [](const std::byte* from) {
      Narrow narrow;
      std::memcpy(&narrow, from, sizeof(narrow));
      return static_cast<float>(narrow);
    };
  }

  // All numbers of a narrow format but infinities and NaN.
  static void fill_codes(const Problem& p, Random& random, std::vector<std::byte>& to) {
    for (std::int64_t i = 0; i < p.x_count(); ++i) {
      auto code = static_cast<std::uint16_t>(random.integer(0, 0xffff));
      if (p.from_format == Format::int8) {
        elements<std::uint8_t>(to)[i] = static_cast<std::uint8_t>(code);
        continue;
      }
      const int exponent = p.from_format == Format::bf16 ? 0x7f80 : 0x7c00;
      if ((code & exponent) == exponent) code = static_cast<std::uint16_t>(code & ~exponent);
      elements<std::uint16_t>(to)[i] = code;
    }
  }

  // A third between two neighbours of the narrow format, where rounding goes to the even one. A
  // third far from 1: beyond the range of int8; of fp16 subnormal numbers; of bf16 none that may
  // become 0.
  static void fill_between(const Problem& p, Random& random, float* values) {
    const bool is_int8 = p.to_format == Format::int8, is_fp16 = p.to_format == Format::fp16;
    const int digits = is_int8 ? 7 : is_fp16 ? 11 : 8;
    for (std::int64_t i = 0; i < p.x_count(); ++i) {
      const std::int64_t kind = random.integer(0, 2);
      const float sign = random.coin() ? -1.0F : 1.0F;
      const auto whole = static_cast<float>(random.integer(1 << (digits - 1), (1 << digits) - 1));
      const auto between = [&](std::int64_t least, std::int64_t most) {
        return static_cast<int>(random.integer(least, most));
      };
      if (is_int8)
        values[i] = kind == 0   ? random.uniform(-130.0F, 130.0F)
                    : kind == 1 ? sign * (static_cast<float>(random.integer(0, 127)) + 0.5F)
                                : sign * std::ldexp(random.uniform(1.0F, 2.0F), between(7, 40));
      else if (kind == 1)
        values[i] = sign * std::ldexp(whole + 0.5F, between(-14, 3));
      else if (kind == 2)
        values[i] = sign * std::ldexp(random.uniform(1.0F, 2.0F),
                                      is_fp16 ? between(-27, -14) : between(-126, 126));
    }
  }
};

}  // namespace

template <>
std::vector<Access> accesses<Reorder>(const reorder::Problem& p, const reorder::Operands& o) {
  return accesses_of<ReorderAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<Reorder>(const reorder::Problem& p, std::string suite,
                                         std::string name) {
  return std::make_unique<TypedCase<ReorderAdapter>>(
      p, describe(Reorder::name, name_of(p.to), p, std::move(suite), std::move(name)));
}

namespace {

// One side of the conversion: a layout of fp32, or a format in nchw.
void read_side(const CsvRow& row, const char* column, Layout& layout, Format& format) {
  std::tie(layout, format) =
      read_name<std::pair<Layout, Format>>(row, column,
                                           {{"nchw", {Layout::nchw, Format::fp32}},
                                            {"nhwc", {Layout::nhwc, Format::fp32}},
                                            {"chwn", {Layout::chwn, Format::fp32}},
                                            {"nchw16c", {Layout::nchw16c, Format::fp32}},
                                            {"fp32", {Layout::nchw, Format::fp32}},
                                            {"bf16", {Layout::nchw, Format::bf16}},
                                            {"fp16", {Layout::nchw, Format::fp16}},
                                            {"int8", {Layout::nchw, Format::int8}}});
}

class ReorderType final : public PrimitiveType {
 public:
  const char* name() const override { return Reorder::name; }
  std::vector<SuiteColumn> suite_columns() const override {
    return {{"batch"}, {"channels"},       {"height"},
            {"width"}, {"from", {"nchw"}}, {"to", {"chwn", "nchw16c", "bf16", "int8"}}};
  }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    constexpr std::int64_t most = 1 << 20;
    reorder::Problem p{.batch = row.integer("batch", 1, most),
                       .channels = row.integer("channels", 1, most),
                       .height = row.integer("height", 1, most),
                       .width = row.integer("width", 1, most)};
    read_side(row, "from", p.from, p.from_format);
    read_side(row, "to", p.to, p.to_format);
    expect_countable(row, "x", {p.batch, p.channels, p.height, p.width});
    return case_of_row<Reorder>(row, p);
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    reorder::Problem p;
    p.batch = random.integer(1, 40);
    p.channels = random.integer(1, 40);
    p.height = random.integer(1, 30);
    p.width = random.integer(1, 30);
    if (random.integer(0, 2) == 0) {
      (random.coin() ? p.from_format : p.to_format) = static_cast<Format>(random.integer(1, 3));
      p.to = Layout::nchw;
      return random_case_of<Reorder>(p);
    }
    p.from = static_cast<Layout>(random.integer(0, 3));
    p.to = static_cast<Layout>(random.integer(0, 3));
    if (random.coin()) (random.coin() ? p.from : p.to) = Layout::nchw;
    if (p.from == p.to) p.to = p.from == Layout::nchw ? Layout::chwn : Layout::nchw;
    return random_case_of<Reorder>(p);
  }
};

}  // namespace

const PrimitiveType& reorder_type() {
  static const ReorderType type;
  return type;
}

}  // namespace stepladder
