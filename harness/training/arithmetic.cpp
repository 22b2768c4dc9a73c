#include "harness/training/arithmetic.hpp"

#include <cstddef>

namespace stepladder {

void add_to(std::span<float> to, std::span<const float> from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

void subtract_from(std::span<float> to, std::span<const float> what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] -= what[i];
}

void scale(std::span<float> values, float factor) {
  for (float& value : values) value *= factor;
}

void divide(std::span<float> values, float by) {
  for (float& value : values) value /= by;
}

void set_to_quotient(std::span<float> to, std::span<const float> from, float by) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] / by;
}

void add_quotient(std::span<float> to, std::span<const float> from, float by) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i] / by;
}

void set_to_part_of_difference(std::span<float> to, std::span<const float> what, float by) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = (to[i] - what[i]) / by;
}

void add_change(std::span<float> token, std::span<float> weights, std::span<float> base) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float sum = token[i] + (weights[i] - base[i]);
    token[i] = base[i] = weights[i] = sum;
  }
}

void add_momentum(std::span<float> change, float momentum, std::span<const float> mean,
                  std::span<float> start, std::span<float> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float changed = momentum * change[i] + (mean[i] - start[i]);
    change[i] = changed;
    weights[i] = start[i] += changed;
  }
}

}  // namespace stepladder
