// MPI_Iallreduce and MPI_Wait. The non-blocking form is made to overlap with computation; here
// nothing overlaps, and the difference to mpi_allreduce is its price: another implementation
// (libnbc in Open MPI 4.1, with recursive doubling and a ring), which builds a schedule and
// allocates workspace in each call.
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

class MpiIallreduce final : public Plan {
 public:
  MpiIallreduce(const Problem& problem, const Resources& resources)
      : problem_(problem), group_(problem, resources) {}

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    for (std::int64_t at = 0; at < count; at += longest_message) {
      const int length = static_cast<int>(std::min(longest_message, count - at));
      const void* input = o.input == o.output ? MPI_IN_PLACE : o.input + at;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Iallreduce(input, o.output + at, length, MPI_FLOAT, MPI_SUM, group_.communicator(),
                     &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (problem_.operation == Operation::mean) divide(o.output, count, group_.ranks());
  }

 private:
  Problem problem_;
  Group group_;
};

constexpr VariantInfo info{
    .name = "mpi_iallreduce",
    .technique = Technique::vendor,
    .adds = "MPI_Iallreduce and MPI_Wait, without anything in between",
};

const Registration registration{info, make_plan<AllReduce, MpiIallreduce>};

}  // namespace
}  // namespace stepladder::all_reduce
