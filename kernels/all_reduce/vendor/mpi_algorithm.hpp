// MPI_Allreduce with an algorithm of Open MPI that the variant names, for the mpi_<algorithm>
// variants. Each also includes kernels/common/mpi.hpp itself, by which the build detects that it
// needs MPI.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

// "Open MPI v4.1.4"
std::string mpi_library();

// MPI_Allreduce in messages of at most longest_message, and the division of a mean.
void mpi_allreduce(const Problem& problem, const Operands& o, MPI_Comm communicator);

// A duplicate of the communicator that runs MPI_Allreduce by one algorithm, a name in Open MPI's
// list. 0 segment bytes: no segments. Collective. Throws Unsupported on every rank if a rank cannot
// choose the algorithm.
//
// Open MPI reads its control variables coll_tuned_allreduce_algorithm and …_segmentsize whenever it
// makes a communicator, if coll_tuned_use_dynamic_rules was set in the environment before MPI_Init.
// This function sets them through MPI's tool interface (MPI_T), duplicates the communicator and
// sets them back: other communicators keep the library's choice.
MPI_Comm communicator_of_algorithm(MPI_Comm communicator, const char* algorithm, int segment_bytes);

class MpiAlgorithm final : public Plan {
 public:
  MpiAlgorithm(const Problem& problem, const Resources& resources, const char* algorithm,
               int segment_bytes)
      : problem_(problem),
        group_(problem, resources),
        communicator_(communicator_of_algorithm(group_.communicator(), algorithm, segment_bytes)) {}

  void run(const Operands& o) override { mpi_allreduce(problem_, o, communicator_.get()); }

 private:
  Problem problem_;
  Group group_;
  OwnedCommunicator communicator_;
};

// The factory of a variant, such as mpi_ring for the algorithm ring.
template <const VariantInfo& info, int segment_bytes = 0>
std::unique_ptr<Plan> mpi_algorithm(const Problem& problem, const Resources& resources) {
  constexpr const char* algorithm = info.name + std::string_view("mpi_").size();
  return std::make_unique<MpiAlgorithm>(problem, resources, algorithm, segment_bytes);
}

}  // namespace stepladder::all_reduce
