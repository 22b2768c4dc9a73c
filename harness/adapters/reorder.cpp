#include "kernels/reorder/reorder.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"

namespace stepladder {

using reorder::Reorder;

namespace {

struct ReorderAdapter {
  using Primitive = Reorder;
  using Problem = reorder::Problem;
  enum Operand : std::size_t { x, y };

  static std::vector<OperandInfo> operands(const Problem& p) {
    return {{"x", p.x_count(), Role::input}, {"y", p.y_count(), Role::output}};
  }
  static reorder::Operands bind(const Problem&, const std::vector<void*>& at) {
    return {.x = static_cast<const float*>(at[x]), .y = static_cast<float*>(at[y])};
  }
  static std::vector<const void*> pointers(const Problem&, const reorder::Operands& o) {
    return {o.x, o.y};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    fill_values(tier, 1, random, floats(contents, x), p.x_count());
    clear_padding(p.from, p.batch, p.channels, p.pixels(), floats(contents, x));
  }
  static void expect(const Problem& p, Tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    expected[y].value.resize(static_cast<std::size_t>(p.y_count()));
    expected[y].bound.assign(expected[y].value.size(), 0.0F);
    reorder::reference(p, floats(contents, x), expected[y].value.data());
  }
  static bool has_exact_tier(const Problem&) { return true; }
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

class ReorderType final : public PrimitiveType {
 public:
  const char* name() const override { return Reorder::name; }
  std::vector<SuiteColumn> suite_columns() const override {
    return {{"batch"}, {"channels"},       {"height"},
            {"width"}, {"from", {"nchw"}}, {"to", {"chwn", "nchw16c"}}};
  }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    constexpr std::int64_t most = 1 << 20;
    const reorder::Problem p{.batch = row.integer("batch", 1, most),
                             .channels = row.integer("channels", 1, most),
                             .height = row.integer("height", 1, most),
                             .width = row.integer("width", 1, most),
                             .from = read_layout(row, "from"),
                             .to = read_layout(row, "to")};
    expect_countable(row, "x", {p.batch, p.channels, p.height, p.width});
    return case_of_row<Reorder>(row, p);
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    reorder::Problem p;
    p.batch = random.integer(1, 40);
    p.channels = random.integer(1, 40);
    p.height = random.integer(1, 30);
    p.width = random.integer(1, 30);
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
