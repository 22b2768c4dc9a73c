// Every fault that an sgd_update rung may have is found, in weights and in states.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/verdict.hpp"

namespace stepladder::sgd_update {
namespace {

Problem problem_of(Optimizer optimizer) {
  return {.optimizer = optimizer, .count = 37, .weight_decay = 0.5F};
}

// One element by the contract, rounded to fp32 when it is stored.
void update(const Problem& p, const Operands& o, std::int64_t i) {
  const Element e =
      reference(p, o.weights[i], o.gradient[i], states(p.optimizer) >= 1 ? o.state1[i] : 0,
                states(p.optimizer) >= 2 ? o.state2[i] : 0, o.learning_rate, o.step);
  o.weights[i] += static_cast<float>(e.change);
  if (states(p.optimizer) >= 1) o.state1[i] = static_cast<float>(e.state1);
  if (states(p.optimizer) >= 2) o.state2[i] = static_cast<float>(e.state2);
}
void update_all(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) update(p, o, i);
}

void wrong_tail(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count / 8 * 8; ++i) update(p, o, i);
}
void wrong_sign(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    const float before = o.weights[i];
    update(p, o, i);
    o.weights[i] = before - (o.weights[i] - before);
  }
}
void decay_forgotten(const Problem& p, const Operands& o) {
  Problem without = p;
  without.weight_decay = 0;
  update_all(without, o);
}
void changes_gradient(const Problem& p, const Operands& o) {
  update_all(p, o);
  const_cast<float*>(o.gradient)[0] = 0;
}
void out_of_bounds_past(const Problem& p, const Operands& o) {
  update_all(p, o);
  o.weights[p.count] = 0;
}
void out_of_bounds_before(const Problem& p, const Operands& o) {
  update_all(p, o);
  o.weights[-1] = 0;
}
void returns_nan(const Problem& p, const Operands& o) {
  update_all(p, o);
  o.weights[p.count - 1] = std::numeric_limits<float>::quiet_NaN();
}
void throws(const Problem&, const Operands&) { throw std::runtime_error("no rule"); }
// Two threads update the same weight.
void updated_twice(const Problem& p, const Operands& o) {
  update_all(p, o);
  update(p, o, p.count / 2);
}
void state_not_kept(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    const float before = o.state1[i];
    update(p, o, i);
    o.state1[i] = before;
  }
}

// v = momentum v − g', as some books write it, with the sign of the weights' change left as it was.
void momentum_sign(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    o.state1[i] = p.momentum * o.state1[i] - (o.gradient[i] + p.weight_decay * o.weights[i]);
    o.weights[i] -= o.learning_rate * o.state1[i];
  }
}

void adam_without_correction(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    const float g = o.gradient[i] + p.weight_decay * o.weights[i];
    o.state1[i] = p.beta1 * o.state1[i] + (1 - p.beta1) * g;
    o.state2[i] = p.beta2 * o.state2[i] + (1 - p.beta2) * g * g;
    o.weights[i] -= o.learning_rate * o.state1[i] / (std::sqrt(o.state2[i]) + p.epsilon);
  }
}

// Counts the steps from 0.
void adam_one_step_late(const Problem& p, const Operands& o) {
  Operands late = o;
  late.step = o.step + 1;
  update_all(p, late);
}

struct FaultOfARule {
  std::vector<Optimizer> optimizers;
  const char* name;
  Factory<SgdUpdate> factory;
  const char* reason;
};

const std::vector<Optimizer> all{Optimizer::sgd,      Optimizer::momentum, Optimizer::adagrad,
                                 Optimizer::adadelta, Optimizer::rmsprop,  Optimizer::adam},
    with_state(all.begin() + 1, all.end());
const FaultOfARule faults[] = {
    {all, "broken_tail", plan_of<wrong_tail>, "weights["},
    {all, "broken_sign", plan_of<wrong_sign>, "weights["},
    {all, "broken_decay", plan_of<decay_forgotten>, "weights["},
    {all, "broken_twice", plan_of<updated_twice>, "weights[18]"},
    {all, "broken_input", plan_of<changes_gradient>, "input gradient was changed"},
    {all, "broken_past", plan_of<out_of_bounds_past>, "weights was written out of bounds"},
    {all, "broken_before", plan_of<out_of_bounds_before>, "weights was written out of bounds"},
    {all, "broken_nan", plan_of<returns_nan>, "weights[36] is nan; expected"},
    {all, "broken_throws", plan_of<throws>, "threw: no rule"},
    {with_state, "broken_state", plan_of<state_not_kept>, "state1["},
    {{Optimizer::momentum}, "broken_momentum", plan_of<momentum_sign>, "weights["},
    {{Optimizer::adam}, "broken_adam", plan_of<adam_without_correction>, "weights["},
    {{Optimizer::adam}, "broken_step", plan_of<adam_one_step_late>, "weights["},
};

TEST(VerifyCatchesSgdUpdate, Faults) {
  for (const FaultOfARule& fault : faults)
    for (const Optimizer optimizer : fault.optimizers)
      EXPECT_TRUE(is_caught<SgdUpdate>(
          problem_of(optimizer), unregistered<SgdUpdate>(fault.name, fault.factory), fault.reason));
}

TEST(VerifyCatchesSgdUpdate, NothingInCorrectKernels) {
  for (const Optimizer optimizer : all) {
    EXPECT_TRUE(first_rungs_pass<SgdUpdate>(problem_of(optimizer)));
    EXPECT_TRUE(passes<SgdUpdate>(problem_of(optimizer), plan_of<update_all>));
  }
}

}  // namespace
}  // namespace stepladder::sgd_update
