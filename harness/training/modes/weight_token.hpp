// Weights that go round a ring of ranks. A rank that has the token adds what it has changed since
// the last time, goes on from the result and hands the token to the next rank. No rank waits for
// it: transfers make progress in poll().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/ranks/communicator.hpp"

namespace stepladder {

class WeightToken {
 public:
  // For `count` weights. Keeps a reference.
  WeightToken(const Communicator& communicator, std::size_t count);

  // Collective. All ranks have the same weights, which contain so many updates.
  void begin(std::span<const float> weights, std::int64_t updates);
  void poll() { arriving_.done(); }
  // Throws std::runtime_error if it is away for the limit of the watch of ranks and for much longer
  // than ever before.
  bool arrived();
  // After arrived(). `own`: updates that this rank has made since the last time. Returns how many
  // of others these missed. When the token contains `last` updates, it goes round once more.
  std::int64_t exchange(std::span<float> weights, std::int64_t own, std::int64_t last);
  bool ended() const { return ended_; }            // it does not come again
  std::int64_t updates() const { return total_; }  // as of the last time
  // Collective, after the end: the weights of all. Returns their updates.
  std::int64_t finish(std::span<float> weights);
  double bytes_sent() const { return bytes_; }  // so far

 private:
  void receive();
  void hand_on(bool ends);

  const Communicator& communicator_;
  // The token: the weights, two floats that hold the number of updates exactly, and whether it is
  // on its last round. base_: the weights when it left this rank.
  std::vector<float> base_, incoming_, outgoing_;
  Communicator::Transfer arriving_, leaving_;
  std::int64_t total_ = 0;  // updates in base_
  bool closing_ = false, ended_ = false;
  double bytes_ = 0;
  double left_at_ = 0, longest_round_ = 0;  // seconds
};

}  // namespace stepladder
