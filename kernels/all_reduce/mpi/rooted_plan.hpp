// The plan of gather_broadcast and binomial_tree: rank 0 completes the sum, divides it for a mean
// and sends it back.
#pragma once

#include <cstdint>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"

namespace stepladder::all_reduce {

// Steps: StarSteps or TreeSteps.
template <class Steps>
class RootedPlan final : public Plan {
 public:
  RootedPlan(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        received_(aligned_array<float>(Steps::workspace(group_, problem.count))) {}

  void run(const Operands& o) override {
    Steps::reduce(group_, o.input, o.output, problem_.count, received_.get());
    if (problem_.operation == Operation::mean && group_.rank() == 0)
      divide(o.output, problem_.count, group_.ranks());
    Steps::broadcast(group_, o.output, problem_.count);
  }

 private:
  Problem problem_;
  Group group_;
  AlignedArray<float> received_;
};

}  // namespace stepladder::all_reduce
