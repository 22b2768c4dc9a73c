// Zero, denormal, infinite and NaN values behave in every rung as in serial or as the contract
// says, next to ordinary values and in vectors of their own.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder::sgd_update {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float largest = std::numeric_limits<float>::max();
constexpr float smallest = std::numeric_limits<float>::denorm_min();
constexpr float smallest_normal = std::numeric_limits<float>::min();

struct Arrays {
  std::vector<float> weights, gradient, state1, state2;

  void append(std::size_t times, float w, float g, float s1, float s2) {
    weights.insert(weights.end(), times, w);
    gradient.insert(gradient.end(), times, g);
    state1.insert(state1.end(), times, s1);
    state2.insert(state2.end(), times, s2);
  }
  void update(const detail::Entry& rung, Problem p) {
    p.count = static_cast<std::int64_t>(weights.size());
    plan_variant<SgdUpdate>(rung, p, {.threads = 2})
        ->run({weights.data(), gradient.data(), state1.data(), state2.data(), 0.125F, 3});
  }
};

// Every special value in `times` neighbouring elements, followed by ordinary ones.
Arrays special_values(Optimizer optimizer, std::size_t times) {
  std::vector<float> squares = {0, smallest, 1e-40F, smallest_normal, 1e-30F, 1, largest, inf, nan};
  std::vector<float> others = squares;
  if (optimizer == Optimizer::adam)
    squares.push_back(-1);  // of a broken state
  else
    others.push_back(-1);
  Arrays a;
  for (const float w : {inf, -inf, nan}) a.append(times, w, 0.5F, 1, 0.25F);
  for (const float g : {0.0F, 1e-30F, -0.5F, 1e15F, largest, -inf, nan})
    for (const float s1 : others)
      for (const float s2 : squares) {
        a.append(times, 0.0625F, g, s1, s2);
        a.append(22, -0.03125F, 0.75F, 0.5F, 0.25F);
      }
  return a;
}

// Both finite and within the rounding errors of one update, or both the same infinity, or both NaN.
bool agree(double expected, float got, float before) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return expected == got;
  const double bound = 0x1p-19 * std::abs(expected - before) + 0x1p-22 * std::abs(before);
  return std::abs(expected - got) <= bound + 1e-44;
}

const detail::Entry& serial() {
  for (const detail::Entry& rung : detail::entries(SgdUpdate::name))
    if (std::string(rung.info->name) == "serial") return rung;
  throw std::logic_error("no serial rung");
}

TEST(SgdUpdateSpecialValues, BehaveAsInSerialOrTheContract) {
  std::map<std::string, int> estimated;  // cases, by rung
  for (const Optimizer optimizer :
       {Optimizer::adagrad, Optimizer::adadelta, Optimizer::rmsprop, Optimizer::adam})
    for (const float epsilon : {0.0F, 0x1p-40F, 1e-8F, 1.0F})
      for (const std::size_t times : {1, 40}) {
        const Problem p{.optimizer = optimizer, .epsilon = epsilon};
        const Arrays before = special_values(optimizer, times);
        Arrays plain = before;
        plain.update(serial(), p);
        for (const Variant& variant : own_rungs(sgd_update_type())) {
          Arrays got = before;
          try {
            got.update(variant.entry, p);
          } catch (const Unsupported&) {
            continue;
          }
          if (std::string(variant.info->name) == "simd_estimate") ++estimated[variant.name];
          int wrong = 0;
          for (std::size_t i = 0; i < before.weights.size() && wrong < 5; ++i) {
            const Element exact = reference(p, before.weights[i], before.gradient[i],
                                            before.state1[i], before.state2[i], 0.125, 3);
            // The quotient of adadelta may underflow or overflow in serial; its root does not.
            const auto expect = [&](const char* name, const std::vector<float>& plain_values,
                                    const std::vector<float>& values, float old, double contract) {
              if (agree(plain_values[i], values[i], old) || agree(contract, values[i], old)) return;
              ++wrong;
              ADD_FAILURE() << variant.name << " " << name_of(optimizer) << ", epsilon " << epsilon
                            << ", g " << before.gradient[i] << ", state1 " << before.state1[i]
                            << ", state2 " << before.state2[i] << ": " << name << " is "
                            << values[i] << ", of serial " << plain_values[i];
            };
            expect("w", plain.weights, got.weights, before.weights[i],
                   before.weights[i] + exact.change);
            expect("state1", plain.state1, got.state1, before.state1[i], exact.state1);
            expect("state2", plain.state2, got.state2, before.state2[i], exact.state2);
          }
        }
      }
  if (cpu_has(Isa::avx2)) {
    EXPECT_TRUE(estimated.contains("simd_estimate_avx2"));
  }
  for (const auto& [name, cases] : estimated)
    EXPECT_EQ(cases, (4 * 3 - 1) * 2) << name;  // all but epsilon 0, and 2^-40 of adam
}

// Roots from ε / 16 to 2^20 ε, in every rung.
TEST(SgdUpdateSpecialValues, SmallRootsAreWithinTheBound) {
  for (const Optimizer optimizer : {Optimizer::adagrad, Optimizer::rmsprop, Optimizer::adam})
    for (const float epsilon : {0x1p-34F, 1e-8F, 1.0F}) {
      const Problem p{.optimizer = optimizer, .epsilon = epsilon};
      Arrays before;
      for (const std::size_t times : {1, 40})
        for (int k = -4; k <= 20; ++k) {
          const float root = std::ldexp(epsilon, k);
          const bool adam = optimizer == Optimizer::adam;
          before.append(times, 0, root / 16, adam ? 1 : root * root, root * root);
        }
      for (const Variant& variant : own_rungs(sgd_update_type())) {
        Arrays got = before;
        got.update(variant.entry, p);
        int wrong = 0;
        for (std::size_t i = 0; i < before.weights.size() && wrong < 5; ++i) {
          const double change =
              reference(p, 0, before.gradient[i], before.state1[i], before.state2[i], 0.125, 3)
                  .change;
          if (std::abs(got.weights[i] - change) <= 0x1p-20 * std::abs(change)) continue;
          ++wrong;
          ADD_FAILURE() << variant.name << " " << name_of(optimizer) << ", epsilon " << epsilon
                        << ", s " << before.state2[i] << ": " << got.weights[i] << " in place of "
                        << change;
        }
      }
    }
}

// The lanes of a vector do not depend on each other.
TEST(SgdUpdateSpecialValues, DoNotChangeTheirNeighbours) {
  for (const Variant& variant : own_rungs(sgd_update_type())) {
    for (const Optimizer optimizer :
         {Optimizer::adagrad, Optimizer::adadelta, Optimizer::rmsprop, Optimizer::adam}) {
      Arrays clean;
      for (int i = 0; i < 37; ++i)
        clean.append(1, 0.0625F, 0.1F * static_cast<float>(i), 0.3F + static_cast<float>(i),
                     0.7F / static_cast<float>(1 + i));
      Arrays mixed = clean;
      for (const std::size_t at : {3, 36}) mixed.state1[at] = mixed.state2[at] = inf;
      clean.update(variant.entry, {.optimizer = optimizer});
      mixed.update(variant.entry, {.optimizer = optimizer});
      for (std::size_t i = 0; i < 36; ++i) {
        if (i == 3) continue;
        EXPECT_EQ(mixed.weights[i], clean.weights[i]) << variant.name << " " << i;
        EXPECT_EQ(mixed.state2[i], clean.state2[i]) << variant.name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace stepladder::sgd_update
