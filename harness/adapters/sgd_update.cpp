#include "kernels/sgd_update/sgd_update.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/types.hpp"

namespace stepladder {

using sgd_update::Optimizer;
using sgd_update::SgdUpdate;

template <>
struct Adapter<SgdUpdate> {
  using Problem = sgd_update::Problem;

  // A power of two, so that the exact tier stays exact; step 3 is past the first, where Adam's correction
  // would hide a missing one.
  static constexpr float learning_rate = 0.125F;
  static constexpr std::int64_t step = 3;

  static std::vector<Field> fields(const Problem& p) {
    const int kept = sgd_update::states(p.optimizer);
    return {{"weights", p.count, Role::in_out},
            {"gradient", p.count, Role::input},
            {"state1", p.count, kept >= 1 ? Role::in_out : Role::unused},
            {"state2", p.count, kept >= 2 ? Role::in_out : Role::unused}};
  }
  static sgd_update::Operands bind(const Problem&, const std::vector<void*>& at) {
    return {static_cast<float*>(at[0]),
            static_cast<float*>(at[1]),
            static_cast<float*>(at[2]),
            static_cast<float*>(at[3]),
            learning_rate,
            step};
  }
  static std::vector<const void*> pointers(const Problem&, const sgd_update::Operands& o) {
    return {o.weights, o.gradient, o.state1, o.state2};
  }
  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    const bool signed_state = p.optimizer == Optimizer::momentum || p.optimizer == Optimizer::adam;
    for (std::size_t field = 0; field < 4; ++field) {
      float* values = floats(contents, field);
      for (std::size_t i = 0; i < contents[field].size() / 4; ++i) {
        const bool squares = field == 3 || (field == 2 && !signed_state);
        if (tier == Tier::exact)
          values[i] = static_cast<float>(8 * random.integer(-32, 32));
        else if (squares)
          values[i] = random.uniform(0.0F, 1.0F);
        else  // weights are small, so that rounding them does not hide the change
          values[i] = random.uniform(-1.0F, 1.0F) * (field == 0 ? 0.0625F : 1.0F);
      }
    }
  }
  static void expect(const Problem& p, Tier tier, Contents& contents,
                     std::vector<Expected>& expected) {
    const bool has1 = sgd_update::states(p.optimizer) >= 1,
               has2 = sgd_update::states(p.optimizer) >= 2;
    const auto count = static_cast<std::size_t>(p.count);
    for (const std::size_t field : {0, 2, 3}) {
      if (field == 2 && !has1) continue;
      if (field == 3 && !has2) continue;
      expected[field].value.resize(count);
      expected[field].bound.resize(count);
    }
    expected[0].change = true;
    constexpr double u = 0x1p-24;
    for (std::size_t i = 0; i < count; ++i) {
      const double w = floats(contents, 0)[i], g = floats(contents, 1)[i];
      const double s1 = has1 ? floats(contents, 2)[i] : 0.0,
                   s2 = has2 ? floats(contents, 3)[i] : 0.0;
      const sgd_update::Element e = sgd_update::reference(p, w, g, s1, s2, learning_rate, step);
      expected[0].value[i] = e.change;
      if (has1) expected[2].value[i] = e.state1;
      if (has2) expected[3].value[i] = e.state2;
      if (tier == Tier::exact) continue;  // bounds stay 0
      // 16 roundings on the way, relative to the terms before they cancel, and one when w is stored.
      const double terms_g = std::abs(g) + std::abs(double{p.weight_decay} * w);
      const double true_g = std::abs(g + double{p.weight_decay} * w);
      const double terms_1 = std::abs(s1) + terms_g;  // before g' or the momentum cancels
      const double amplify =
          p.optimizer == Optimizer::sgd        ? learning_rate * terms_g
          : p.optimizer == Optimizer::momentum ? learning_rate * terms_1
          : p.optimizer == Optimizer::adam
              ? std::abs(e.change) + learning_rate * terms_1 / std::max(1e-6, std::sqrt(e.state2))
              : std::abs(e.change) * std::max(1.0, terms_g / std::max(true_g, 1e-12));
      expected[0].bound[i] =
          static_cast<float>(16 * u * amplify + 2 * u * (std::abs(w) + std::abs(e.change)) + 1e-30);
      if (has1)
        expected[2].bound[i] =
            static_cast<float>(16 * u * (std::abs(s1) + terms_g + terms_g * terms_g) + 1e-30);
      if (has2)
        expected[3].bound[i] =
            static_cast<float>(16 * u *
                                   (std::abs(s2) + terms_g * terms_g +
                                    e.change * e.change / (learning_rate * learning_rate)) +
                               1e-30);
    }
  }
  // Roots and quotients round; the update of sgd, and of momentum with factors of powers of two, does not.
  static bool has_exact_tier(const Problem& p) {
    return p.optimizer == Optimizer::sgd ||
           (p.optimizer == Optimizer::momentum && p.momentum == 0.5F);
  }
};

template <>
std::vector<Access> accesses<SgdUpdate>(const sgd_update::Problem& p,
                                        const sgd_update::Operands& o) {
  return accesses_of<SgdUpdate>(p, o);
}

template <>
std::unique_ptr<Case> make_case<SgdUpdate>(const sgd_update::Problem& p, std::string suite,
                                           std::string name) {
  ProblemInfo info =
      describe(SgdUpdate::name, SgdUpdate::plain_layout, p, std::move(suite), std::move(name));
  info.in_place = true;
  return std::make_unique<TypedCase<SgdUpdate>>(p, std::move(info));
}

namespace {

constexpr Optimizer optimizers[] = {Optimizer::sgd,      Optimizer::momentum, Optimizer::adagrad,
                                    Optimizer::adadelta, Optimizer::rmsprop,  Optimizer::adam};

class SgdUpdateType final : public PrimitiveType {
 public:
  const char* name() const override { return SgdUpdate::name; }
  std::vector<std::string> suite_columns() const override { return {"count"}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    std::vector<std::unique_ptr<Case>> all;
    for (const Optimizer optimizer : optimizers)
      all.push_back(make_case<SgdUpdate>(
          {.optimizer = optimizer, .count = row.integer("count", 1, std::int64_t{1} << 36)},
          row.text("suite"), row.text("name")));
    return all;
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    sgd_update::Problem p;
    p.optimizer = optimizers[random.integer(0, 5)];
    p.count = random.integer(0, 3) == 0 ? random.integer(1, 40000) : random.integer(1, 300);
    p.weight_decay = random.coin() ? 0.5F : 0.0F;
    p.momentum = random.coin() ? 0.5F : 0.9F;
    return make_case<SgdUpdate>(p, "random", "random." + direction(p) + "." + shape(p));
  }
};

}  // namespace

const PrimitiveType& sgd_update_type() {
  static const SgdUpdateType type;
  return type;
}

}  // namespace stepladder
