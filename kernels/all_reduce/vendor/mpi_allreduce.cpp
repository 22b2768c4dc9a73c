// MPI_Allreduce. The library chooses an algorithm by count and number of ranks: Open MPI 4.1 has,
// among others, recursive doubling, a ring, a segmented ring and Rabenseifner's algorithm.
//
// Identical bits: the MPI standard requires that all ranks receive identical results; for the mean,
// all ranks divide them by the same number.
#include <algorithm>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class MpiAllreduce final : public Plan {
 public:
  MpiAllreduce(const Problem& problem, const Resources& resources)
      : problem_(problem), group_(problem, resources) {}

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    for (std::int64_t at = 0; at < count; at += longest_message) {
      const int length = static_cast<int>(std::min(longest_message, count - at));
      const void* input = o.input == o.output ? MPI_IN_PLACE : o.input + at;
      MPI_Allreduce(input, o.output + at, length, MPI_FLOAT, MPI_SUM, group_.communicator());
    }
    if (problem_.operation == Operation::mean) divide(o.output, count, group_.ranks());
  }

 private:
  Problem problem_;
  Group group_;
};

constexpr VariantInfo info{
    .name = "mpi_allreduce",
    .technique = Technique::vendor,
    .adds = "MPI_Allreduce, with the algorithm that the MPI library chooses",
};

const Registration registration{info, make_plan<AllReduce, MpiAllreduce>};

}  // namespace
}  // namespace stepladder::all_reduce
