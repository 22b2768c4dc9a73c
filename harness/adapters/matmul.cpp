#include "kernels/matmul/matmul.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "kernels/matmul/distribution.hpp"

namespace stepladder {

using matmul::Epilogue;
using matmul::Matmul;

namespace {

struct MatmulAdapter {
  using Primitive = Matmul;
  using Problem = matmul::Problem;
  enum Operand : std::size_t { a, b, c, bias, y };

  static std::vector<OperandInfo> operands(const Problem& p) {
    std::vector<OperandInfo> all = {
        {"a", p.m * p.k, Role::input},
        {"b", p.k * p.n, Role::input},
        {"c", p.m * p.n, p.triangle ? Role::in_out : Role::output},
        {"bias", p.n, has_bias(p.epilogue) ? Role::input : Role::unused},
        {"y", p.m * p.n, has_y(p) ? Role::input : Role::unused}};
    all[c].extents = {p.m, p.n};
    return all;
  }
  static matmul::Operands bind(const Problem&, const std::vector<void*>& at) {
    const auto f = [&](Operand operand) { return static_cast<float*>(at[operand]); };
    return {.a = f(a), .b = f(b), .c = f(c), .bias = f(bias), .y = f(y)};
  }
  static std::vector<const void*> pointers(const Problem&, const matmul::Operands& o) {
    return {o.a, o.b, o.c, o.bias, o.y};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    fill_values(tier, terms(p), random, floats(contents, a), p.m * p.k);
    fill_values(tier, terms(p), random, floats(contents, b), p.k * p.n);
    if (has_bias(p.epilogue)) fill_values(tier, terms(p), random, floats(contents, bias), p.n);
    if (has_y(p))  // negative values too, which no ReLU returns
      std::generate_n(floats(contents, y), p.m * p.n,
                      [&] { return static_cast<float>(random.integer(-1, 2)); });
    for_each_above_diagonal(p, [&](std::int64_t i) {  // below, C stays NaN
      floats(contents, c)[i] = random.uniform(-1.0F, 1.0F);
    });
  }
  static void expect(const Problem& p, Tier tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    Expected& result = expected[c];
    result.value.resize(static_cast<std::size_t>(p.m * p.n));
    std::vector<double> magnitude(result.value.size());
    matmul::reference(p,
                      {.a = floats(contents, a),
                       .b = floats(contents, b),
                       .c = nullptr,
                       .bias = floats(contents, bias),
                       .y = floats(contents, y)},
                      result.value.data(), magnitude.data());
    bound_sums(tier, terms(p), magnitude, result);
    result.largest_sum = largest_sum(tier, static_cast<double>(p.k),
                                     {floats(contents, a), static_cast<std::size_t>(p.m * p.k)},
                                     {floats(contents, b), static_cast<std::size_t>(p.k * p.n)});
    for_each_above_diagonal(p, [&](std::int64_t i) {
      result.value[static_cast<std::size_t>(i)] = floats(contents, c)[i];
    });
  }
  static bool has_exact_tier(const Problem&) { return true; }
  static std::vector<OperandBlock> blocks(const Problem& p, const VariantInfo& variant) {
    const matmul::Blocks of = matmul::blocks_of(p, variant, mpi_session().rank());
    return {block(of.a, p.transpose_a ? p.m : p.k),
            block(of.b, p.transpose_b ? p.k : p.n),
            block(of.c, p.n),
            {},
            {}};
  }

 private:
  static OperandBlock block(const matmul::Block& of, std::int64_t stride) {
    return {.first = of.rows.begin * stride + of.columns.begin,
            .rows = of.rows.end - of.rows.begin,
            .columns = of.columns.end - of.columns.begin,
            .stride = stride};
  }
  static bool has_y(const Problem& p) { return p.epilogue == Epilogue::relu_gradient; }
  // Calls function(i) for the elements of C that must stay as they are.
  template <class Function>
  static void for_each_above_diagonal(const Problem& p, const Function& function) {
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = columns_of_row(p, i); j < p.n; ++j) function(i * p.n + j);
  }
  static double terms(const Problem& p) {  // of one element's sum
    return static_cast<double>(p.k + (has_bias(p.epilogue) ? 1 : 0));
  }
};

}  // namespace

template <>
std::vector<Access> accesses<Matmul>(const matmul::Problem& p, const matmul::Operands& o) {
  return accesses_of<MatmulAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<Matmul>(const matmul::Problem& p, std::string suite,
                                        std::string name) {
  ProblemInfo info =
      describe(Matmul::name, Matmul::plain_layout, p, std::move(suite), std::move(name));
  info.ranks = p.ranks;
  info.hosts = p.ranks > 1 ? mpi_session().hosts() : 1;
  return std::make_unique<TypedCase<MatmulAdapter>>(p, std::move(info));
}

namespace {

class MatmulType final : public PrimitiveType {
 public:
  const char* name() const override { return Matmul::name; }
  bool runs_over_ranks() const override { return true; }
  std::vector<SuiteColumn> suite_columns() const override {
    return {{"m"}, {"n"}, {"k"}, {"transpose_a", {"0"}}, {"transpose_b", {"0"}}};
  }
  std::vector<std::string> optional_columns() const override { return {"epilogue", "triangle"}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int ranks) const override {
    constexpr std::int64_t most = 1 << 24;
    const matmul::Problem p{
        .m = row.integer("m", 1, most),
        .n = row.integer("n", 1, most),
        .k = row.integer("k", 1, most),
        .transpose_a = row.integer("transpose_a", 0, 1) == 1,
        .transpose_b = row.integer("transpose_b", 0, 1) == 1,
        .epilogue = read_name<Epilogue>(row, "epilogue",
                                        {{"", Epilogue::none},
                                         {"bias", Epilogue::bias},
                                         {"bias_relu", Epilogue::bias_relu},
                                         {"relu_gradient", Epilogue::relu_gradient}}),
        .triangle = read_name<bool>(row, "triangle", {{"", false}, {"lower", true}}),
        .ranks = ranks};
    if (p.triangle && (p.m != p.n || p.epilogue != Epilogue::none))
      row.fail(fmt::format("a triangle of {} x {}; expected m = n and no epilogue", p.m, p.n));
    return case_of_row<Matmul>(row, p);
  }
  std::unique_ptr<Case> random_case(Random& random, int ranks) const override {
    const std::int64_t epilogue = std::max<std::int64_t>(0, random.integer(-4, 3));
    matmul::Problem p{.m = random_matrix_size(random),
                      .n = random_matrix_size(random),
                      .k = random_matrix_size(random),
                      .transpose_a = random.coin(),
                      .transpose_b = random.coin(),
                      .epilogue = static_cast<Epilogue>(epilogue),
                      .ranks = ranks};
    if (p.epilogue == Epilogue::none && random.integer(0, 5) == 0) {
      p.n = p.m;
      p.triangle = true;
    }
    return make_case<Matmul>(p, "random", "random." + shape(p));
  }
};

}  // namespace

const PrimitiveType& matmul_type() {
  static const MatmulType type;
  return type;
}

}  // namespace stepladder
