#include "harness/training/modes/replica.hpp"

#include <algorithm>

#include "harness/training/arithmetic.hpp"
#include "kernels/common/cpu/partition.hpp"

namespace stepladder {
namespace {

NetworkOptions options_of(const TrainingSetup& setup, int part, NetworkOptions options) {
  options.threads = setup.threads;
  options.seed = setup.seed;
  options.replica = part;
  return options;
}

std::pair<std::int64_t, std::int64_t> share_of(std::int64_t batch, int part, int parts) {
  const auto [begin, end] = partition(batch, parts, part, 1);
  return {begin, end - begin};
}

}  // namespace

Replica::Replica(const TrainingSetup& setup, const UseSpec& use, int part, int parts,
                 NetworkOptions options)
    : first_(static_cast<int>(share_of(setup.description.batch, part, parts).first)),
      count_(static_cast<int>(share_of(setup.description.batch, part, parts).second)),
      parts_(parts),
      whole_(setup.description.batch),
      network_(network::with_batch(setup.description, std::max(count_, 1)), use,
               options_of(setup, part, options), *setup.plans),
      batches_(*setup.data, static_cast<int>(whole_), setup.seed, setup.shift) {}

void Replica::draw(std::int64_t number) {
  network_.set_next_step(number + 1);  // for dropout
  if (count_ > 0) batches_.draw(number, first_, network_.images(), network_.labels());
}

double Replica::gradient() {
  if (count_ == 0) {
    std::ranges::fill(gradients(), 0.0F);
    return 0;
  }
  const double share = static_cast<double>(count_) / static_cast<double>(whole_);
  const double loss = share * network_.forward();
  network_.backward();
  const auto scale = static_cast<float>(share * parts_);
  if (count_ * std::int64_t{parts_} != whole_) stepladder::scale(gradients(), scale);
  return loss;
}

}  // namespace stepladder
