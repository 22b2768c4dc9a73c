// Shared memory as the level inside a node: the ranks copy their vectors into a window. Each lane
// adds its shard of all of them and leaves the sum in the window, from where all ranks copy it.
//
//     (2 - 1/g) n copied + (g-1)/g n gamma + two barriers        g ranks of a node, n bytes
//
// MPI_Barrier makes the stores of all ranks visible. Two of them are enough: vectors are read
// between the two, and sums before the next run's first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/all_reduce/mpi/hierarchical/nodes.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"
#include "kernels/common/links.hpp"

namespace stepladder::all_reduce {

class IntraWindow {
 public:
  IntraWindow(const Nodes& nodes, std::int64_t count)
      : node_(nodes.node()),
        count_(count),
        lanes_(nodes.smallest()),
        window_(nodes.window(static_cast<std::size_t>(count + count / lanes_ + 1) * sizeof(float))),
        vector_(reinterpret_cast<float*>(window_->segment())),
        sums_(vector_ + count) {}

  int lane() const { return node_.rank() < lanes_ ? node_.rank() : -1; }
  std::int64_t shard() const { return shard_of(node_.rank()).count; }

  // No other rank reads this rank's values of its own shard: they stay in `input`.
  float* reduce(const float* input, float*) {
    const Chunk own = shard_of(node_.rank());
    const std::int64_t end = own.first + own.count;
    copy(input, vector_, own.first);
    copy(input + end, vector_ + end, count_ - end);
    MPI_Barrier(node_.communicator());
    for (std::int64_t at = 0; at < own.count; at += block)
      add_block(input, own.first + at, sums_ + at, std::min(block, own.count - at));
    return sums_;
  }

  void gather(float* output) {
    MPI_Barrier(node_.communicator());
    for (int lane = 0; lane < lanes_; ++lane) {
      const Chunk shard = shard_of(lane);
      copy(window_->of(lane, sums_), output + shard.first, shard.count);
    }
  }

  static double lanes(const CommunicationCost& c) { return c.g; }
  static double cost(const CommunicationCost& c) {
    const double barrier = std::ceil(std::log2(c.g)) * c.l.within.swap(0);
    return c.l.copy(c.n - c.n / c.g) + (c.g - 1) * c.l.add(c.n / c.g) + c.l.copy(c.n) + 2 * barrier;
  }

 private:
  static constexpr std::int64_t block = 4096;  // floats, so that the sum stays in the L1 cache

  Chunk shard_of(int rank) const {
    return rank < lanes_ ? chunk_of({0, count_}, lanes_, rank) : Chunk{count_, 0};
  }

  // The sum over the node of elements [first, first + length), beginning with this rank's.
  void add_block(const float* input, std::int64_t first, float* sum, std::int64_t length) const {
    const float* partial = input + first;
    for (int step = 1; step < node_.ranks(); ++step) {
      const int rank = (node_.rank() + step) % node_.ranks();
      add(partial, window_->of(rank, vector_ + first), sum, length);
      partial = sum;
    }
    copy(partial, sum, length);  // one rank: nothing was added
  }

  Group node_;
  std::int64_t count_;
  int lanes_;
  std::unique_ptr<Window> window_;
  float* vector_;  // [count] in this rank's segment, except the own shard
  float* sums_;    // [own shard] behind it
};

}  // namespace stepladder::all_reduce
