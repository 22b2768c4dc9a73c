// The weights go round. Every replica trains weights of its own; when the token with the weights of
// all comes by, it adds the change that it has made since the last time, goes on from the result,
// and hands the token to the next rank. No rank waits for a mean or for another rank: the time of a
// round decides how stale the weights are. Transfers progress between the operations of a step.
#include <vector>

#include "harness/training/replica.hpp"

namespace stepladder {
namespace {

class TokenRing final : public Mode {
 public:
  TokenRing(const TrainingSetup& setup, const ModeSpec&)
      : Mode(setup, info.name),
        replica_(setup, setup.use, 0, 1, {.exchange = Exchange::none, .shared_gradients = false}) {
    const std::size_t count = replica_.parameters().size();
    base_.resize(count);
    incoming_.resize(count + header);
    outgoing_.resize(count + header);
  }

  TrainableNetwork& network() override { return replica_.network(); }

  static const ModeInfo info;

 private:
  // After the weights the token has the number of updates, in two floats that hold it exactly, and
  // whether the training ends.
  static constexpr std::size_t header = 3;
  static constexpr std::int64_t radix = 1 << 20;

  void train_to(std::int64_t last) override {
    const int ranks = communicator().ranks(), rank = communicator().rank();
    std::ranges::copy(replica_.parameters(), base_.begin());
    seen_ = progress().step;
    own_ = 0;
    total_ = progress().step;
    if (ranks == 1) {
      while (progress().step < last) {
        local_step();
        count_staleness(progress().step + own_);
        finished(loss_, rate_);
        own_ = 0;
      }
      return;
    }
    arriving_ = communicator().start_receive((rank + ranks - 1) % ranks, incoming_);
    replica_.network().after_operations([this](const Operation&) { arriving_.done(); });
    if (rank == 0) hand_on(replica_.parameters(), total_, false);
    bool ends = false, closing = false;
    while (!ends) {
      local_step();
      if (!arriving_.done()) continue;
      compute(0, [&] { add_to_token(); });
      // Rank 0 closes the round: the token then visits every rank once more.
      ends = rank == 0 ? closing : incoming_.back() != 0;
      closing = rank == 0 && total_ >= last;
      if (!(rank == 0 && ends)) hand_on(base_, total_, rank == 0 ? closing : ends);
      if (!ends)
        arriving_ = communicator().start_receive((rank + ranks - 1) % ranks, incoming_);
    }
    replica_.network().after_operations({});
    blocked([&] {
      leaving_.wait();
      communicator().broadcast(0, replica_.parameters());
    });
    const auto total = static_cast<std::int64_t>(communicator().maximum(static_cast<double>(total_)));
    finished(loss_, rate_, total - progress().step);
  }

  void local_step() {
    const int ranks = communicator().ranks(), rank = communicator().rank();
    rate_ = learning_rate(total_);
    compute(replica_.samples(), [&] {
      replica_.draw(number_++ * ranks + rank);
      loss_ = replica_.gradient();
      replica_.update(rate_);
    });
    ++own_;
  }

  // The token is what all have added so far; `base_` what it was when it left this rank.
  void add_to_token() {
    const auto weights = replica_.parameters();
    const std::int64_t others = updates(incoming_);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      incoming_[i] += weights[i] - base_[i];
      base_[i] = weights[i] = incoming_[i];
    }
    count_staleness(others);
    total_ = others + own_;
    own_ = 0;
    seen_ = total_;
    if (communicator().rank() == 0) finished(loss_, rate_, total_ - progress().step);
  }

  // Others' updates since this rank read the weights.
  void count_staleness(std::int64_t others) {
    for (std::int64_t i = 0; i < own_; ++i) stale(others - seen_);
  }

  void hand_on(std::span<const float> weights, std::int64_t updates, bool ends) {
    blocked([&] { leaving_.wait(); });
    compute(0, [&] {
      std::ranges::copy(weights, outgoing_.begin());
      outgoing_[weights.size()] = static_cast<float>(updates / radix);
      outgoing_[weights.size() + 1] = static_cast<float>(updates % radix);
      outgoing_[weights.size() + 2] = ends ? 1.0F : 0.0F;
    });
    leaving_ = communicator().start_send((communicator().rank() + 1) % communicator().ranks(),
                                         outgoing_);
    sent(static_cast<double>(outgoing_.size() * sizeof(float)));
  }

  static std::int64_t updates(std::span<const float> token) {
    return static_cast<std::int64_t>(token[token.size() - 3]) * radix +
           static_cast<std::int64_t>(token[token.size() - 2]);
  }

  Replica replica_;
  std::vector<float> base_, incoming_, outgoing_;
  Communicator::Transfer arriving_, leaving_;
  std::int64_t number_ = 0;  // of this rank's batches
  std::int64_t total_ = 0;   // updates, as this rank knows them
  std::int64_t seen_ = 0;    // updates in base_
  std::int64_t own_ = 0;     // of this rank since then
  double loss_ = 0, rate_ = 0;
};

const ModeInfo TokenRing::info{
    .name = "token_ring",
    .idea = "the weights go round; every rank adds its change and hands them on, none waits",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .options = {},
};

const ModeRegistration registration(TokenRing::info, make_mode<TokenRing>);

}  // namespace
}  // namespace stepladder
