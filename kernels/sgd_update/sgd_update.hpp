// sgd_update: one step of gradient descent on a flat array of weights, in place.
//
// With g' = gradient + weight_decay · w (L2; gradient alone where weight_decay is 0), lr the
// learning rate, t the step counted from 1:
//   sgd       w -= lr g'
//   momentum  v = momentum v + g';  w -= lr v                          (Polyak 1964, heavy ball)
//   adagrad   s += g'²;  w -= lr g' / (√s + ε)                         (Duchi et al. 2011)
//   rmsprop   s = ρ s + (1−ρ) g'²;  w -= lr g' / (√s + ε)              (Hinton, lecture 6e, 2012)
//   adadelta  s = ρ s + (1−ρ) g'²;  d = √(u+ε) / √(s+ε) · g';
//             u = ρ u + (1−ρ) d²;  w -= lr d                           (Zeiler 2012)
//   adam      m = β₁ m + (1−β₁) g';  s = β₂ s + (1−β₂) g'²;
//             w -= lr · m/(1−β₁ᵗ) / (√(s/(1−β₂ᵗ)) + ε)                 (Kingma and Ba 2015)
//
// Over several ranks (MPI processes) all ranks have the same weights and state, and each has its
// own gradient; `gradient` above is the mean over the ranks. Afterwards all ranks have the same
// bits in their weights. Each rank keeps the state of a shard: of all weights, or at least of its
// share, ⌊count / ranks⌋. In the rest of its state arrays an element is updated too or left as it
// was.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::sgd_update {

enum class Optimizer { sgd, momentum, adagrad, adadelta, rmsprop, adam };

struct Problem {
  Optimizer optimizer = Optimizer::sgd;
  std::int64_t count = 0;
  float weight_decay = 0;
  float momentum = 0.9F;
  float rho = 0.9F;                    // rmsprop, adadelta
  float beta1 = 0.9F, beta2 = 0.999F;  // adam
  float epsilon = 1e-8F;
  int ranks = 1;  // more than one: only variants with .over_ranks
};

struct Operands {
  float* weights;         // [count], read and written
  const float* gradient;  // [count]
  // State, [count] each, read and written; unused where the optimizer has none.
  float* state1;  // v of momentum; s of adagrad, rmsprop and adadelta; m of adam
  float* state2;  // u of adadelta; s of adam
  float learning_rate;
  std::int64_t step;  // t, from 1
};

struct SgdUpdate {
  static constexpr const char* name = "sgd_update";
  static constexpr const char* plain_layout = "flat";
  using Problem = sgd_update::Problem;
  using Operands = sgd_update::Operands;
  // Throws Unsupported unless the variant is for as many processes as the problem: one, or several.
  static void require(const Problem& problem, const VariantInfo& info);
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<SgdUpdate>;

const char* name_of(Optimizer optimizer);
int states(Optimizer optimizer);                // number of state arrays: 0, 1 or 2
std::string direction(const Problem& problem);  // the optimizer's name
std::string shape(const Problem& problem);      // "535818" or "535818 decay"
// The update of all weights once, as one process does it, on any number of ranks: without the
// addition of gradients, and without the work that ranks repeat.
double flops(const Problem& problem);  // additions, multiplications, divisions and roots, each 1
double bytes_read(const Problem& problem);     // weights, gradient and state once
double bytes_written(const Problem& problem);  // weights and state once

// The result for one element, in double precision. `change` is added to the weight.
struct Element {
  double change, state1, state2;
};
Element reference(const Problem& problem, double weight, double gradient, double state1,
                  double state2, double learning_rate, std::int64_t step);

}  // namespace stepladder::sgd_update
