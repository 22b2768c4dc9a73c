// The ring as a level.
//
//     inside a node    2 (g-1) alpha + 2 (g-1)/g n beta + (g-1)/g n gamma        g ranks, n bytes
//     between nodes    2 (q-1) alpha + 2 (q-1)/q m beta + (q-1)/q m gamma        q nodes, m bytes
//
// Inside a node, the reduce-scatter leaves a shard of the sum on each rank, which is its lane, and
// the all-gather later collects the shards. m = n/g then, and all ranks of a node send between
// nodes at once: beta is that of a link shared by g.
//
// Identical bits: one rank completes the sum of a chunk, the others receive copies.
#pragma once

#include <cstdint>

#include "kernels/all_reduce/mpi/hierarchical/nodes.hpp"
#include "kernels/all_reduce/mpi/ring_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"

namespace stepladder::all_reduce {

class IntraRing {
 public:
  IntraRing(const Nodes& nodes, std::int64_t count)
      : node_(nodes.node()),
        count_(count),
        lanes_(nodes.smallest()),
        received_(aligned_array<float>(longest_chunk(node_, count, lanes_))) {}

  int lane() const { return own_index(node_) < lanes_ ? own_index(node_) : -1; }
  std::int64_t shard() const { return own_chunk(node_, count_, lanes_).count; }

  float* reduce(const float* input, float* output) {
    reduce_scatter(node_, input, output, count_, received_.get(), lanes_);
    return output + own_chunk(node_, count_, lanes_).first;
  }
  void gather(float* output) { all_gather(node_, output, count_, lanes_); }

  static double lanes(const CommunicationCost& c) { return c.g; }
  static double cost(const CommunicationCost& c) {
    return (c.g - 1) * (2 * c.l.within.shift(c.n / c.g) + c.l.add(c.n / c.g));
  }

 private:
  Group node_;
  std::int64_t count_;
  int lanes_;
  AlignedArray<float> received_;
};

class InterRing {
 public:
  InterRing(const Group& lane, std::int64_t count)
      : lane_(lane), count_(count), received_(aligned_array<float>(longest_chunk(lane, count))) {}

  void all_reduce(float* values) {
    reduce_scatter(lane_, values, values, count_, received_.get());
    all_gather(lane_, values, count_);
  }

  static double cost(const CommunicationCost& c, double lanes) {
    const double nodes = c.p / c.g;
    const double chunk = c.n / lanes / nodes;
    const CostCurve& step = lanes > 1 ? c.l.between.swap : c.l.between.shift;
    return (nodes - 1) * (2 * step(chunk) + c.l.add(chunk));
  }

 private:
  Group lane_;
  std::int64_t count_;
  AlignedArray<float> received_;
};

}  // namespace stepladder::all_reduce
