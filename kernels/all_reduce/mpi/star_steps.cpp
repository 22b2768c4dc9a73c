#include "kernels/all_reduce/mpi/star_steps.hpp"

#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

std::int64_t StarSteps::workspace(const Group& group, std::int64_t count) {
  return group.rank() == 0 && group.ranks() > 1 ? count : 0;
}

void StarSteps::reduce(const Group& group, const float* input, float* output, std::int64_t count,
                       float* received) {
  if (group.rank() != 0) {
    group.send(input, count, 0);
    return;
  }
  if (group.ranks() == 1) copy(input, output, count);
  // The first addition reads the input and writes the output, which saves a copy.
  const float* sum = input;
  for (int rank = 1; rank < group.ranks(); ++rank) {
    group.receive(received, count, rank);
    add(sum, received, output, count);
    sum = output;
  }
}

void StarSteps::broadcast(const Group& group, float* values, std::int64_t count) {
  if (group.rank() != 0) {
    group.receive(values, count, 0);
    return;
  }
  for (int rank = 1; rank < group.ranks(); ++rank) group.send(values, count, rank);
}

}  // namespace stepladder::all_reduce
