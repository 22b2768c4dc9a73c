#include "harness/training/modes/weight_token.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/ranks/rank_watch.hpp"
#include "harness/training/arithmetic.hpp"
#include "harness/training/clock.hpp"

namespace stepladder {
namespace {

constexpr std::size_t header = 3;
constexpr std::int64_t radix = 1 << 20;

}  // namespace

WeightToken::WeightToken(const Communicator& communicator, std::size_t count)
    : communicator_(communicator),
      base_(count),
      incoming_(count + header),
      outgoing_(count + header) {}

void WeightToken::begin(std::span<const float> weights, std::int64_t updates) {
  std::ranges::copy(weights, base_.begin());
  total_ = updates;
  closing_ = ended_ = false;
  receive();
  if (communicator_.rank() == 0) hand_on(false);
}

bool WeightToken::arrived() {
  if (ended_) return false;
  const double away = training_clock() - left_at_;
  if (arriving_.done()) {
    longest_round_ = std::max(longest_round_, away);
    return true;
  }
  static const double limit = RankWatch::limit_from_environment();
  if (limit > 0 && away > limit + 20 * longest_round_)
    throw std::runtime_error(
        fmt::format("the token has not come for {:.0f} s: a rank of the ring hangs", away));
  return false;
}

void WeightToken::receive() {
  left_at_ = training_clock();
  const int ranks = communicator_.ranks();
  if (ranks > 1)
    arriving_ = communicator_.start_receive((communicator_.rank() + ranks - 1) % ranks, incoming_);
}

void WeightToken::hand_on(bool ends) {
  const int ranks = communicator_.ranks();
  leaving_.wait();
  std::ranges::copy(base_, outgoing_.begin());
  float* const header_at = outgoing_.data() + base_.size();
  const std::int64_t high = total_ / radix;
  header_at[0] = static_cast<float>(high);
  header_at[1] = static_cast<float>(total_ % radix);
  header_at[2] = ends ? 1.0F : 0.0F;
  if (ranks == 1) {
    incoming_ = outgoing_;
    return;
  }
  leaving_ = communicator_.start_send((communicator_.rank() + 1) % ranks, outgoing_);
  bytes_ += static_cast<double>(outgoing_.size() * sizeof(float));
}

std::int64_t WeightToken::exchange(std::span<float> weights, std::int64_t own, std::int64_t last) {
  const float* const header_at = incoming_.data() + base_.size();
  const std::int64_t updates =
      static_cast<std::int64_t>(header_at[0]) * radix + static_cast<std::int64_t>(header_at[1]);
  const std::int64_t missed = updates - total_;
  const bool is_last_round = header_at[2] != 0;
  add_change(std::span(incoming_).first(base_.size()), weights, base_);
  total_ = updates + own;
  // Rank 0 begins the last round and is the last one in it.
  if (communicator_.rank() == 0) {
    ended_ = closing_;
    closing_ = total_ >= last;
    if (communicator_.ranks() == 1) ended_ = closing_;
    if (!ended_) hand_on(closing_);
  } else {
    ended_ = is_last_round;
    hand_on(is_last_round);
  }
  if (!ended_) receive();
  return missed;
}

std::int64_t WeightToken::finish(std::span<float> weights) {
  leaving_.wait();
  std::ranges::copy(base_, weights.begin());
  communicator_.broadcast(0, weights);
  return static_cast<std::int64_t>(communicator_.maximum(static_cast<double>(total_)));
}

}  // namespace stepladder
