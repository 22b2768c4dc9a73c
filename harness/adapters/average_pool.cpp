#include "kernels/average_pool/average_pool.hpp"

#include <bit>

#include "harness/adapters/pooling.hpp"
#include "harness/adapters/primitives.hpp"

namespace stepladder {

using average_pool::AveragePool;
using average_pool::Count;
using average_pool::Direction;

namespace {

struct AveragePoolAdapter {
  using Primitive = AveragePool;
  using Problem = average_pool::Problem;
  enum Operand : std::size_t { x, y };

  static std::vector<OperandInfo> operands(const Problem& p) {
    const bool forward = p.direction == Direction::forward;
    std::vector<OperandInfo> all = {
        {forward ? "x" : "dx", p.x_count(), forward ? Role::input : Role::output},
        {forward ? "y" : "dy", p.y_count(), forward ? Role::output : Role::input}};
    all[x].extents = input_extents(p);
    all[y].extents = output_extents(p);
    return all;
  }
  static average_pool::Operands bind(const Problem&, const std::vector<void*>& at) {
    return {.x = static_cast<float*>(at[x]), .y = static_cast<float*>(at[y])};
  }
  static std::vector<const void*> pointers(const Problem&, const average_pool::Operands& o) {
    return {o.x, o.y};
  }
  // Exact tier: integers so small that their sums are exact, backward those of dy / divisor.
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    const bool is_forward = p.direction == Direction::forward;
    float* values = floats(contents, is_forward ? x : y);
    fill_terms(tier, largest_sum(p), random, values, is_forward ? p.x_count() : p.y_count());
    const std::int64_t plane = is_forward ? p.height * p.width : p.out_h() * p.out_w();
    clear_padding(p.layout, p.batch, p.channels, plane, values);
  }
  static void expect(const Problem& p, Tier tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    const bool is_forward = p.direction == Direction::forward;
    Expected& result = expected[is_forward ? y : x];
    result.value.resize(static_cast<std::size_t>(is_forward ? p.y_count() : p.x_count()));
    std::vector<double> magnitude(result.value.size());
    if (is_forward)
      average_pool::reference_forward(p, floats(contents, x), result.value.data(),
                                      magnitude.data());
    else
      average_pool::reference_backward(p, floats(contents, y), result.value.data(),
                                       magnitude.data());
    bound_sums(tier, positions(p), magnitude, result);
  }
  // If every divisor is a power of two, quotients are exact, and so are products with reciprocals.
  static bool has_exact_tier(const Problem& p) {
    return has_power_of_two(p.count, p.height, p.window_h, p.stride_h, p.pad_h, p.out_h()) &&
           has_power_of_two(p.count, p.width, p.window_w, p.stride_w, p.pad_w, p.out_w()) &&
           (p.direction == Direction::forward || largest_sum(p) <= 0x1p24);
  }

 private:
  static double positions(const Problem& p) {
    return static_cast<double>(p.window_h) * static_cast<double>(p.window_w);
  }
  // The sum counts ones, in units of the last place: backward, a one has as many as positions.
  static double largest_sum(const Problem& p) {
    return positions(p) * (p.direction == Direction::forward ? 1 : positions(p));
  }
  // Along one axis, of every window.
  static bool has_power_of_two(Count count, std::int64_t size, std::int64_t window,
                               std::int64_t stride, std::int64_t pad, std::int64_t out) {
    const auto is_power_of_two = [](std::int64_t n) {
      return std::has_single_bit(static_cast<std::uint64_t>(n));
    };
    if (count == Count::include_padding) return is_power_of_two(window);
    for (std::int64_t i = 0; i < out; ++i) {
      const std::int64_t start = i * stride - pad;
      const std::int64_t inside = std::min(size, start + window) - std::max<std::int64_t>(0, start);
      if (!is_power_of_two(inside)) return false;
    }
    return true;
  }
};

}  // namespace

template <>
std::vector<Access> accesses<AveragePool>(const average_pool::Problem& p,
                                          const average_pool::Operands& o) {
  return accesses_of<AveragePoolAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<AveragePool>(const average_pool::Problem& p, std::string suite,
                                             std::string name) {
  return std::make_unique<TypedCase<AveragePoolAdapter>>(
      p, describe(AveragePool::name, name_of(p.layout), p, std::move(suite), std::move(name)));
}

namespace {

class AveragePoolType final : public PrimitiveType {
 public:
  const char* name() const override { return AveragePool::name; }
  std::vector<SuiteColumn> suite_columns() const override { return pooling_columns(); }
  std::vector<std::string> optional_columns() const override { return {"count", "layout"}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    auto p = read_pooling<average_pool::Problem>(row);
    p.count = read_name<Count>(row, "count",
                               {{"", Count::include_padding},
                                {"include_padding", Count::include_padding},
                                {"exclude_padding", Count::exclude_padding}});
    return case_of_row<AveragePool>(row, p);
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    auto p = random_pooling<average_pool::Problem>(random);
    if (random.integer(0, 9) == 0) {  // global average pooling
      p.window_h = p.height;
      p.window_w = p.width;
      p.pad_h = p.pad_w = 0;
    }
    if (random.coin()) p.count = Count::exclude_padding;
    return random_case_of<AveragePool>(p);
  }
};

}  // namespace

const PrimitiveType& average_pool_type() {
  static const AveragePoolType type;
  return type;
}

}  // namespace stepladder
