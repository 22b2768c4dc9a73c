#include "kernels/convolution/convolution.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"

namespace stepladder {

using convolution::Convolution;
using convolution::Direction;

namespace {

struct ConvolutionAdapter {
  using Primitive = Convolution;
  using Problem = convolution::Problem;
  enum Operand : std::size_t { x, w, y };

  static Operand result(const Problem& p) {
    return p.direction == Direction::forward ? y : p.direction == Direction::backward_data ? x : w;
  }
  static std::vector<OperandInfo> operands(const Problem& p) {
    std::vector<OperandInfo> all = {
        {p.direction == Direction::backward_data ? "dx" : "x", p.x_count(), Role::input},
        {p.direction == Direction::backward_weights ? "dw" : "w", p.w_count(), Role::input},
        {p.direction == Direction::forward ? "y" : "dy", p.y_count(), Role::input}};
    all[result(p)].role = Role::output;
    all[x].extents = image_extents(p.layout, p.batch, p.in_channels, p.height, p.width);
    all[y].extents = image_extents(p.layout, p.batch, p.out_channels, p.out_h(), p.out_w());
    if (p.layout == Layout::nchw)
      all[w].extents = {p.out_channels, p.group_in(), p.kernel_h, p.kernel_w};
    return all;
  }
  static convolution::Operands bind(const Problem&, const std::vector<void*>& at) {
    return {.x = static_cast<float*>(at[x]),
            .w = static_cast<float*>(at[w]),
            .y = static_cast<float*>(at[y])};
  }
  static std::vector<const void*> pointers(const Problem&, const convolution::Operands& o) {
    return {o.x, o.w, o.y};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    const std::int64_t counts[] = {p.x_count(), p.w_count(), p.y_count()};
    for (const Operand operand : {x, w, y})
      if (operand != result(p))
        fill_values(tier, static_cast<double>(terms(p)), random, floats(contents, operand),
                    counts[operand]);
    if (result(p) != x)
      clear_padding(p.layout, p.batch, p.in_channels, p.height * p.width, floats(contents, x));
    if (result(p) != w)
      clear_padding(p.layout, 1, p.out_channels, p.group_in() * p.kernel_h * p.kernel_w,
                    floats(contents, w));
    if (result(p) != y)
      clear_padding(p.layout, p.batch, p.out_channels, p.out_h() * p.out_w(), floats(contents, y));
  }
  static void expect(const Problem& p, Tier tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    Expected& out = expected[result(p)];
    out.value.resize(contents[result(p)].size() / 4);
    std::vector<double> magnitude(out.value.size());
    convolution::reference(p, {floats(contents, x), floats(contents, w), floats(contents, y)},
                           out.value.data(), magnitude.data());
    bound_sums(tier, static_cast<double>(terms(p)), magnitude, out);
    const auto of = [&](Operand operand) {
      return std::span<const float>(floats(contents, operand), contents[operand].size() / 4);
    };
    const Operand a = result(p) == x ? y : x, b = result(p) == w ? y : w;
    out.largest_sum = largest_sum(tier, static_cast<double>(terms(p)), of(a), of(b));
  }
  static bool has_exact_tier(const Problem&) { return true; }
};

}  // namespace

template <>
std::vector<Access> accesses<Convolution>(const convolution::Problem& p,
                                          const convolution::Operands& o) {
  return accesses_of<ConvolutionAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<Convolution>(const convolution::Problem& p, std::string suite,
                                             std::string name) {
  return std::make_unique<TypedCase<ConvolutionAdapter>>(
      p, describe(Convolution::name, name_of(p.layout), p, std::move(suite), std::move(name)));
}

namespace {

class ConvolutionType final : public PrimitiveType {
 public:
  const char* name() const override { return Convolution::name; }
  std::vector<SuiteColumn> suite_columns() const override {
    return {{"batch"},           {"in_channels"},
            {"height"},          {"width"},
            {"out_channels"},    {"kernel_h"},
            {"kernel_w"},        {"stride_h", {"1"}},
            {"stride_w", {"1"}}, {"pad_h", {"0"}},
            {"pad_w", {"0"}},    {"direction", {"forward", "backward_data", "backward_weights"}}};
  }
  std::vector<std::string> optional_columns() const override { return {"groups", "layout"}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    constexpr std::int64_t most = 1 << 20;
    const convolution::Problem p{
        .direction = read_name<Direction>(row, "direction",
                                          {{"forward", Direction::forward},
                                           {"backward_data", Direction::backward_data},
                                           {"backward_weights", Direction::backward_weights}}),
        .batch = row.integer("batch", 1, most),
        .in_channels = row.integer("in_channels", 1, most),
        .height = row.integer("height", 1, most),
        .width = row.integer("width", 1, most),
        .out_channels = row.integer("out_channels", 1, most),
        .kernel_h = row.integer("kernel_h", 1, most),
        .kernel_w = row.integer("kernel_w", 1, most),
        .stride_h = row.integer("stride_h", 1, most),
        .stride_w = row.integer("stride_w", 1, most),
        .pad_h = row.integer("pad_h", 0, most),
        .pad_w = row.integer("pad_w", 0, most),
        .groups = row.integer("groups", 1, most, 1),
        .layout = read_layout(row)};
    // The largest outputs: stride 1, kernel 1.
    const std::int64_t out_h = p.height + 2 * p.pad_h, out_w = p.width + 2 * p.pad_w;
    expect_countable(row, "x", {p.batch, p.in_channels, p.height, p.width});
    expect_countable(row, "w", {p.out_channels, p.in_channels, p.kernel_h, p.kernel_w});
    expect_countable(row, "y", {p.batch, p.out_channels, out_h, out_w});
    return case_of_row<Convolution>(row, p);
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    convolution::Problem p;
    p.direction = static_cast<Direction>(random.integer(0, 2));
    p.groups = random.integer(0, 3) == 0 ? random.integer(2, 3) : 1;
    p.batch = random.integer(1, 3);
    p.in_channels = p.groups * random.integer(1, 20);
    p.out_channels = p.groups * random.integer(1, 36);
    p.kernel_h = random.integer(1, 6);
    p.kernel_w = random.integer(1, 6);
    p.stride_h = random.integer(1, 3);
    p.stride_w = random.integer(1, 3);
    if (random.integer(0, 1) == 0) {  // as in most layers; some rungs take nothing else
      p.kernel_h = p.kernel_w = random.integer(1, 3) * 2 - 1;
      p.stride_h = p.stride_w = random.integer(1, 2);
    }
    // Sometimes more padding than kernel: some outputs depend on no x.
    const std::int64_t more = random.integer(0, 9) == 0 ? 2 : -1;
    p.pad_h = random.integer(0, p.kernel_h + more);
    p.pad_w = random.integer(0, p.kernel_w + more);
    p.height = random.integer(std::max<std::int64_t>(1, p.kernel_h - 2 * p.pad_h), 17);
    p.width = random.integer(std::max<std::int64_t>(1, p.kernel_w - 2 * p.pad_w), 40);
    const std::int64_t thin = random.integer(0, 15);  // an output of one row or column
    if (thin == 0) p.height = std::max<std::int64_t>(1, p.kernel_h - 2 * p.pad_h);
    if (thin == 1) p.width = std::max<std::int64_t>(1, p.kernel_w - 2 * p.pad_w);
    draw_layout(random, p);
    return random_case_of<Convolution>(p);
  }

 private:
  static void draw_layout(Random& random, convolution::Problem& p) {
    const std::int64_t layout = random.integer(0, 11);
    if (layout < 3) p.layout = Layout::nhwc;
    if (layout < 3 || layout > 6) return;
    p.layout = layout < 5 ? Layout::chwn : Layout::nchw16c;
    if (random.coin()) p.direction = Direction::forward;
    if (p.layout == Layout::nchw16c) return;
    // Several vectors of images and a tail, on images so small that the reference takes no longer.
    p.batch = random.integer(1, 70);
    p.in_channels = p.groups * random.integer(1, 3);
    p.height = std::min<std::int64_t>(p.height, std::max<std::int64_t>(p.kernel_h, 5));
    p.width = std::min<std::int64_t>(p.width, std::max<std::int64_t>(p.kernel_w, 7));
  }
};

}  // namespace

const PrimitiveType& convolution_type() {
  static const ConvolutionType type;
  return type;
}

}  // namespace stepladder
