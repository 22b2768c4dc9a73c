#include "kernels/max_pool/max_pool.hpp"

#include "harness/adapters/pooling.hpp"
#include "harness/adapters/primitives.hpp"

namespace stepladder {

using max_pool::Direction;
using max_pool::Epilogue;
using max_pool::MaxPool;

namespace {

struct MaxPoolAdapter {
  using Primitive = MaxPool;
  using Problem = max_pool::Problem;
  enum Operand : std::size_t { x, y, argmax, bias, forward_y, dbias };

  static std::vector<OperandInfo> operands(const Problem& p) {
    const bool forward = p.direction == Direction::forward;
    const auto of_epilogue = [&](Direction direction, Role role) {
      return has_epilogue(p) && p.direction == direction ? role : Role::unused;
    };
    std::vector<OperandInfo> all = {
        {forward ? "x" : "dx", p.x_count(), forward ? Role::input : Role::output},
        {forward ? "y" : "dy", p.y_count(), forward ? Role::output : Role::input},
        {"argmax", p.y_count(), forward ? Role::output : Role::input, 1},
        {"bias", p.channels, of_epilogue(Direction::forward, Role::input)},
        {"y", p.y_count(), of_epilogue(Direction::backward, Role::input)},
        {"dbias", p.channels, of_epilogue(Direction::backward, Role::output)}};
    all[x].extents = input_extents(p);
    all[y].extents = all[argmax].extents = output_extents(p);
    return all;
  }
  static max_pool::Operands bind(const Problem&, const std::vector<void*>& at) {
    const auto f = [&](Operand operand) { return static_cast<float*>(at[operand]); };
    return {.x = f(x),
            .y = f(y),
            .argmax = static_cast<std::uint8_t*>(at[argmax]),
            .bias = f(bias),
            .forward_y = f(forward_y),
            .dbias = f(dbias)};
  }
  static std::vector<const void*> pointers(const Problem&, const max_pool::Operands& o) {
    return {o.x, o.y, o.argmax, o.bias, o.forward_y, o.dbias};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    if (p.direction == Direction::forward) {
      fill_x(p, tier, random, floats(contents, x));
      if (has_epilogue(p)) fill_bias(p, tier, random, floats(contents, bias));
      return;
    }
    std::vector<float> any_x(static_cast<std::size_t>(p.x_count()));
    std::vector<float> any_bias(static_cast<std::size_t>(p.channels));
    std::vector<double> result(static_cast<std::size_t>(p.y_count()));
    fill_x(p, tier, random, any_x.data());
    fill_bias(p, tier, random, any_bias.data());
    max_pool::reference_forward(p, any_x.data(), any_bias.data(), result.data(),
                                positions(contents));
    if (has_epilogue(p))
      std::transform(result.begin(), result.end(), floats(contents, forward_y),
                     [](double value) { return static_cast<float>(value); });
    fill_terms(tier, terms(p), random, floats(contents, y), p.y_count());
    clear_padding(p.layout, p.batch, p.channels, p.out_h() * p.out_w(), floats(contents, y));
  }
  static void expect(const Problem& p, Tier tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    if (p.direction == Direction::forward)
      expect_forward(p, tier, contents, expected);
    else
      expect_backward(p, tier, contents, expected);
  }
  static bool has_exact_tier(const Problem&) { return true; }

 private:
  static bool has_epilogue(const Problem& p) { return p.epilogue != Epilogue::none; }
  static double terms(const Problem& p) {  // of the longest sum
    return static_cast<double>(has_epilogue(p) ? p.batch * p.out_h() * p.out_w()
                                               : p.window_h * p.window_w);
  }
  static std::uint8_t* positions(Contents& contents) {
    return reinterpret_cast<std::uint8_t*>(contents[argmax].data());
  }
  // Exact tier: few distinct values, so that windows hold ties. Every third plane is negative.
  static void fill_x(const Problem& p, Tier tier, Random& random, float* values) {
    const Strides at = p.x_strides();
    const std::int64_t channels = stored_channels(p.layout, p.channels);
    for (std::int64_t i = 0; i < p.planes(); ++i) {
      const bool negative = i % 3 == 1;
      float* plane = values + at.plane(i / channels, i % channels);
      for (std::int64_t row = 0; row < p.height; ++row)
        for (std::int64_t column = 0; column < p.width; ++column)
          plane[row * at.row + column * at.column] =
              tier == Tier::exact ? static_cast<float>(random.integer(-5, negative ? -1 : 5))
                                  : random.uniform(-1.0F, negative ? -0.5F : 1.0F);
    }
    clear_padding(p.layout, p.batch, p.channels, p.height * p.width, values);
  }
  // As large as x: some sums with x are 0, many are negative.
  static void fill_bias(const Problem& p, Tier tier, Random& random, float* values) {
    for (std::int64_t c = 0; c < p.channels; ++c)
      values[c] = tier == Tier::exact ? static_cast<float>(random.integer(-5, 5))
                                      : random.uniform(-1.0F, 1.0F);
  }
  static void expect_forward(const Problem& p, Tier tier, Contents& contents,
                             std::vector<Expected>& expected) {
    Expected &result = expected[y], &position = expected[argmax];
    result.value.resize(static_cast<std::size_t>(p.y_count()));
    result.bound.assign(result.value.size(), 0.0F);
    std::vector<std::uint8_t> largest(result.value.size());
    max_pool::reference_forward(p, floats(contents, x), floats(contents, bias), result.value.data(),
                                largest.data());
    if (has_epilogue(p)) bound_addition(tier, result);
    position.value.assign(largest.begin(), largest.end());
    position.bound.assign(largest.size(), 0.0F);
  }
  static void expect_backward(const Problem& p, Tier tier, Contents& contents,
                              std::vector<Expected>& expected) {
    Expected& dx = expected[x];
    dx.value.resize(static_cast<std::size_t>(p.x_count()));
    std::vector<double> magnitude(dx.value.size());
    max_pool::reference_backward(p, floats(contents, y), positions(contents),
                                 floats(contents, forward_y), dx.value.data(), magnitude.data());
    bound_sums(tier, static_cast<double>(p.window_h * p.window_w), magnitude, dx);
    if (!has_epilogue(p)) return;
    Expected& sums = expected[dbias];
    sums.value.resize(static_cast<std::size_t>(p.channels));
    magnitude.resize(sums.value.size());
    max_pool::reference_bias_gradient(p, floats(contents, y), floats(contents, forward_y),
                                      sums.value.data(), magnitude.data());
    bound_sums(tier, terms(p), magnitude, sums);
  }
  // y is one addition. A y of 0 is exact.
  static void bound_addition(Tier tier, Expected& result) {
    if (tier == Tier::accuracy)
      std::transform(
          result.value.begin(), result.value.end(), result.bound.begin(), [](double value) {
            return std::nextafter(static_cast<float>(rounding_bound(1) * value), INFINITY);
          });
  }
};

}  // namespace

template <>
std::vector<Access> accesses<MaxPool>(const max_pool::Problem& p, const max_pool::Operands& o) {
  return accesses_of<MaxPoolAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<MaxPool>(const max_pool::Problem& p, std::string suite,
                                         std::string name) {
  return std::make_unique<TypedCase<MaxPoolAdapter>>(
      p, describe(MaxPool::name, name_of(p.layout), p, std::move(suite), std::move(name)));
}

namespace {

class MaxPoolType final : public PrimitiveType {
 public:
  const char* name() const override { return MaxPool::name; }
  std::vector<SuiteColumn> suite_columns() const override { return pooling_columns(); }
  std::vector<std::string> optional_columns() const override { return {"epilogue", "layout"}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    auto p = read_pooling<max_pool::Problem>(row);
    p.epilogue = read_name<Epilogue>(row, "epilogue",
                                     {{"", Epilogue::none}, {"bias_relu", Epilogue::bias_relu}});
    return case_of_row<MaxPool>(row, p);
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    auto p = random_pooling<max_pool::Problem>(random);
    if (p.layout == Layout::nchw && random.integer(0, 2) == 0) p.epilogue = Epilogue::bias_relu;
    return random_case_of<MaxPool>(p);
  }
};

}  // namespace

const PrimitiveType& max_pool_type() {
  static const MaxPoolType type;
  return type;
}

}  // namespace stepladder
