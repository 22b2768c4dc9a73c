#include "kernels/sgd_update/sgd_update.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace stepladder {

using sgd_update::Optimizer;
using sgd_update::SgdUpdate;

namespace {

struct SgdUpdateAdapter {
  using Primitive = SgdUpdate;
  using Problem = sgd_update::Problem;
  enum Operand : std::size_t { weights, gradient, state1, state2 };

  // A power of two keeps the exact tier exact. In step 1 some errors of Adam's bias correction
  // cancel.
  static constexpr float learning_rate = 0.125F;
  static constexpr std::int64_t step = 3;

  static std::vector<OperandInfo> operands(const Problem& p) {
    const int kept = sgd_update::states(p.optimizer);
    return {{"weights", p.count, Role::in_out},
            {"gradient", p.count, Role::input},
            {"state1", p.count, kept >= 1 ? Role::in_out : Role::unused},
            {"state2", p.count, kept >= 2 ? Role::in_out : Role::unused}};
  }
  static sgd_update::Operands bind(const Problem&, const std::vector<void*>& at) {
    const auto f = [&](Operand operand) { return static_cast<float*>(at[operand]); };
    return {.weights = f(weights),
            .gradient = f(gradient),
            .state1 = f(state1),
            .state2 = f(state2),
            .learning_rate = learning_rate,
            .step = step};
  }
  static std::vector<const void*> pointers(const Problem&, const sgd_update::Operands& o) {
    return {o.weights, o.gradient, o.state1, o.state2};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    const std::uint64_t stream = stream_of_ranks(random);
    const bool signed_state = p.optimizer == Optimizer::momentum || p.optimizer == Optimizer::adam;
    for (const Operand operand : {weights, gradient, state1, state2}) {
      float* values = floats(contents, operand);
      for (std::size_t i = 0; i < contents[operand].size() / 4; ++i) {
        const bool squares = operand == state2 || (operand == state1 && !signed_state);
        if (tier == Tier::exact)
          values[i] = static_cast<float>(8 * random.integer(-32, 32));
        else if (squares)
          values[i] = random.uniform(0.0F, 1.0F);
        else  // small weights: their rounding does not hide the change
          values[i] = random.uniform(-1.0F, 1.0F) * (operand == weights ? 0.0625F : 1.0F);
      }
    }
    if (p.ranks == 1) return;
    // All values so far are the same on all ranks, but each rank has its own gradient.
    for (std::int64_t i = 0; i < p.count; ++i)
      floats(contents, gradient)[i] = gradient_of(p, tier, stream, mpi_session().rank(), i);
  }

  // In the exact tier a multiple of 8 and of the number of ranks, so that the mean is exact too.
  static float gradient_of(const Problem& p, Tier tier, std::uint64_t stream, int rank,
                           std::int64_t i) {
    return value_of_rank(tier, 8 * p.ranks, stream, rank, i);
  }
  struct Gradient {
    double mean, magnitude;  // magnitude: the mean of the absolute values
  };
  static Gradient mean_gradient(const Problem& p, Tier tier, std::uint64_t stream,
                                Contents& contents, std::int64_t i) {
    const double own = floats(contents, gradient)[i];
    if (p.ranks == 1) return {own, std::abs(own)};
    Gradient sum{};
    for (int rank = 0; rank < p.ranks; ++rank) {
      const double g = gradient_of(p, tier, stream, rank, i);
      sum.mean += g;
      sum.magnitude += std::abs(g);
    }
    return {sum.mean / p.ranks, sum.magnitude / p.ranks};
  }

  static void expect(const Problem& p, Tier tier, const Random& random, Contents& contents,
                     std::vector<Expected>& expected) {
    const int states = sgd_update::states(p.optimizer);
    const bool has1 = states >= 1, has2 = states >= 2;
    const auto count = static_cast<std::size_t>(p.count);
    for (const Operand operand : {weights, state1, state2}) {
      if ((operand == state1 && !has1) || (operand == state2 && !has2)) continue;
      expected[operand].value.resize(count);
      expected[operand].bound.resize(count);
    }
    expected[weights].change = true;
    for (const Operand operand : {state1, state2})
      if (p.ranks > 1) expected[operand].least_updated = p.count / p.ranks;  // a shard
    constexpr double u = 0x1p-24;
    // Of the update, and of the sum and the quotient that are the mean.
    const double roundings = 16 + (p.ranks > 1 ? p.ranks : 0);
    const std::uint64_t stream = stream_of_ranks(random);
    for (std::size_t i = 0; i < count; ++i) {
      const double w = floats(contents, weights)[i];
      const auto [g, magnitude] =
          mean_gradient(p, tier, stream, contents, static_cast<std::int64_t>(i));
      const double s1 = has1 ? floats(contents, state1)[i] : 0.0;
      const double s2 = has2 ? floats(contents, state2)[i] : 0.0;
      const sgd_update::Element e = sgd_update::reference(p, w, g, s1, s2, learning_rate, step);
      expected[weights].value[i] = e.change;
      if (has1) expected[state1].value[i] = e.state1;
      if (has2) expected[state2].value[i] = e.state2;
      if (tier == Tier::exact) continue;  // bounds stay 0
      // The roundings, relative to the terms before they cancel, and one when w is stored.
      const double terms_g = magnitude + std::abs(double{p.weight_decay} * w);
      const double true_g = std::abs(g + double{p.weight_decay} * w);
      const double terms_1 = std::abs(s1) + terms_g;  // before g' or the momentum cancels
      const double amplify =
          p.optimizer == Optimizer::sgd        ? learning_rate * terms_g
          : p.optimizer == Optimizer::momentum ? learning_rate * terms_1
          : p.optimizer == Optimizer::adam
              ? std::abs(e.change) + learning_rate * terms_1 / std::max(1e-6, std::sqrt(e.state2))
              : std::abs(e.change) * std::max(1.0, terms_g / std::max(true_g, 1e-12));
      expected[weights].bound[i] = static_cast<float>(
          roundings * u * amplify + 2 * u * (std::abs(w) + std::abs(e.change)) + 1e-30);
      if (has1)
        expected[state1].bound[i] = static_cast<float>(
            roundings * u * (std::abs(s1) + terms_g + terms_g * terms_g) + 1e-30);
      if (has2)
        expected[state2].bound[i] =
            static_cast<float>(roundings * u *
                                   (std::abs(s2) + terms_g * terms_g +
                                    e.change * e.change / (learning_rate * learning_rate) *
                                        std::max(1.0, terms_g / std::max(true_g, 1e-12))) +
                               1e-30);
    }
  }
  // Roots and quotients round. sgd, and momentum with a power of two, compute exactly.
  static bool has_exact_tier(const Problem& p) {
    return p.optimizer == Optimizer::sgd ||
           (p.optimizer == Optimizer::momentum && p.momentum == 0.5F);
  }
};

}  // namespace

template <>
std::vector<Access> accesses<SgdUpdate>(const sgd_update::Problem& p,
                                        const sgd_update::Operands& o) {
  return accesses_of<SgdUpdateAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<SgdUpdate>(const sgd_update::Problem& p, std::string suite,
                                           std::string name) {
  ProblemInfo info =
      describe(SgdUpdate::name, SgdUpdate::plain_layout, p, std::move(suite), std::move(name));
  info.in_place = true;
  info.ranks = p.ranks;
  info.vector_bytes = 4.0 * static_cast<double>(p.count);
  info.hosts = p.ranks > 1 ? mpi_session().hosts() : 1;
  return std::make_unique<TypedCase<SgdUpdateAdapter>>(p, std::move(info));
}

namespace {

constexpr Optimizer optimizers[] = {Optimizer::sgd,      Optimizer::momentum, Optimizer::adagrad,
                                    Optimizer::adadelta, Optimizer::rmsprop,  Optimizer::adam};

class SgdUpdateType final : public PrimitiveType {
 public:
  const char* name() const override { return SgdUpdate::name; }
  bool runs_over_ranks() const override { return true; }
  std::vector<SuiteColumn> suite_columns() const override { return {{"count"}}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int ranks) const override {
    std::vector<std::unique_ptr<Case>> all;
    for (const Optimizer optimizer : optimizers)
      all.push_back(make_case<SgdUpdate>({.optimizer = optimizer,
                                          .count = row.integer("count", 1, std::int64_t{1} << 36),
                                          .ranks = ranks},
                                         row.text("suite"), row.text("name")));
    return all;
  }
  std::unique_ptr<Case> random_case(Random& random, int ranks) const override {
    sgd_update::Problem p{.ranks = ranks};
    p.optimizer = optimizers[random.integer(0, 5)];
    p.count = random.integer(0, 3) == 0 ? random.integer(1, 40000) : random.integer(1, 300);
    p.weight_decay = random.coin() ? 0.5F : 0.0F;
    p.momentum = random.coin() ? 0.5F : 0.9F;
    return random_case_of<SgdUpdate>(p);
  }
};

}  // namespace

const PrimitiveType& sgd_update_type() {
  static const SgdUpdateType type;
  return type;
}

}  // namespace stepladder
