#include "kernels/all_reduce/mpi/tree_steps.hpp"

#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

std::int64_t TreeSteps::workspace(const Group& group, std::int64_t count) {
  return group.rank() % 2 == 0 && group.rank() + 1 < group.ranks() ? count : 0;
}

void TreeSteps::reduce(const Group& group, const float* input, float* output, std::int64_t count,
                       float* received) {
  const int rank = group.rank();
  if (group.ranks() == 1) copy(input, output, count);
  // The first addition reads the input and writes the output, which saves a copy.
  const float* sum = input;
  for (int distance = 1; distance < group.ranks(); distance *= 2) {
    if ((rank & distance) != 0) {
      group.send(sum, count, rank - distance);
      return;
    }
    if (rank + distance >= group.ranks()) continue;
    group.receive(received, count, rank + distance);
    add(sum, received, output, count);
    sum = output;
  }
}

void TreeSteps::broadcast(const Group& group, float* values, std::int64_t count) {
  const int rank = group.rank();
  // The distance at which this rank sent its sum; beyond all ranks for the root.
  int distance = 1;
  while (distance < group.ranks() && (rank & distance) == 0) distance *= 2;
  if (rank != 0) group.receive(values, count, rank - distance);
  for (distance /= 2; distance > 0; distance /= 2)
    if (rank + distance < group.ranks()) group.send(values, count, rank + distance);
}

}  // namespace stepladder::all_reduce
