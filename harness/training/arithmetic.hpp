// What modes compute over weights and gradients: measured, so compiled at -O3, unlike what is
// around it. The spans of a call have the same length. add() and divide() of all_reduce are not
// called here: in the simulation they take simulated time, which modes count with their own clock.
#pragma once

#include <span>

namespace stepladder {

void add_to(std::span<float> to, std::span<const float> from);         // to += from
void subtract_from(std::span<float> to, std::span<const float> what);  // to -= what
void scale(std::span<float> values, float factor);
void divide(std::span<float> values, float by);
void set_to_quotient(std::span<float> to, std::span<const float> from, float by);  // from / by
void add_quotient(std::span<float> to, std::span<const float> from, float by);  // to += from / by
// to = (to - what) / by
void set_to_part_of_difference(std::span<float> to, std::span<const float> what, float by);

// weights, base and token = token + (weights - base)
void add_change(std::span<float> token, std::span<float> weights, std::span<float> base);

// change = momentum * change + (mean - start), then start and weights = start + change
void add_momentum(std::span<float> change, float momentum, std::span<const float> mean,
                  std::span<float> start, std::span<float> weights);

}  // namespace stepladder
