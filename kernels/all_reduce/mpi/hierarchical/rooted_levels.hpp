// Star and tree as levels: their root has the sum and sends it back. A node has one lane, that of
// its root, which carries the whole vector between nodes.
//
//     star    (k-1) (2 (alpha + n beta) + n gamma)        k ranks of a node or k nodes, n bytes
//     tree    log2 k (2 (alpha + n beta) + n gamma)       rounded up
//
// Identical bits: the root completes the sum, the others receive copies.
#pragma once

#include <cstdint>

#include "kernels/all_reduce/mpi/hierarchical/nodes.hpp"
#include "kernels/all_reduce/mpi/star_steps.hpp"
#include "kernels/all_reduce/mpi/tree_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"

namespace stepladder::all_reduce {

// Steps: StarSteps or TreeSteps.
template <class Steps>
class IntraRooted {
 public:
  IntraRooted(const Nodes& nodes, std::int64_t count)
      : node_(nodes.node()),
        count_(count),
        received_(aligned_array<float>(Steps::workspace(node_, count))) {}

  int lane() const { return node_.rank() == 0 ? 0 : -1; }
  std::int64_t shard() const { return count_; }

  float* reduce(const float* input, float* output) {
    Steps::reduce(node_, input, output, count_, received_.get());
    return output;
  }
  void gather(float* output) { Steps::broadcast(node_, output, count_); }

  static double lanes(const CommunicationCost&) { return 1; }
  static double cost(const CommunicationCost& c) {
    return Steps::messages(c.g) * (2 * c.l.within.send(c.n) + c.l.add(c.n));
  }

 private:
  Group node_;
  std::int64_t count_;
  AlignedArray<float> received_;
};

template <class Steps>
class InterRooted {
 public:
  InterRooted(const Group& lane, std::int64_t count)
      : lane_(lane),
        count_(count),
        received_(aligned_array<float>(Steps::workspace(lane, count))) {}

  void all_reduce(float* values) {
    Steps::reduce(lane_, values, values, count_, received_.get());
    Steps::broadcast(lane_, values, count_);
  }

  // With lanes, a message shares its link with one of each other lane.
  static double cost(const CommunicationCost& c, double lanes) {
    const double shard = c.n / lanes;
    const CostCurve& message = lanes > 1 ? c.l.between.swap : c.l.between.send;
    return Steps::messages(c.p / c.g) * (2 * message(shard) + c.l.add(shard));
  }

 private:
  Group lane_;
  std::int64_t count_;
  AlignedArray<float> received_;
};

using IntraStar = IntraRooted<StarSteps>;
using IntraTree = IntraRooted<TreeSteps>;
using InterStar = InterRooted<StarSteps>;
using InterTree = InterRooted<TreeSteps>;

}  // namespace stepladder::all_reduce
