// Persistent all-reduce: MPI plans it once for a pair of buffers (MPI_Allreduce_init of MPI 4 and
// Open MPI 5, MPIX_Allreduce_init of Open MPI 4.1), and each run only starts the plan and waits.
//
// A request is bound to its buffers, which this plan learns in prepare() or run(). The first call
// with a pair of buffers makes its requests, and later calls start them, so the first run with each
// further pair is slower. The plan keeps requests for 4,096 pairs; then a new pair replaces the
// oldest. Making requests is collective: a pair must be new on all ranks or on none.
//
// Identical bits: as in MPI_Allreduce, the library's results are identical on all ranks; for the
// mean, all ranks divide them by the same number.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif

namespace stepladder::all_reduce {
namespace {

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
constexpr auto allreduce_init = MPI_Allreduce_init;
constexpr bool is_available = true;
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
constexpr auto allreduce_init = MPIX_Allreduce_init;
constexpr bool is_available = true;
#else
int allreduce_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                   MPI_Request*) {
  return MPI_ERR_OTHER;
}
constexpr bool is_available = false;
#endif

class MpiPersistent final : public Plan {
 public:
  MpiPersistent(const Problem& problem, const Resources& resources)
      : problem_(problem), group_(problem, resources) {
    if (!is_available)
      throw Unsupported(mpi_library() + " has no persistent all-reduce, which is of MPI 4");
    // Requests of other plans on the same communicator need not match the order of these.
    MPI_Comm_dup(group_.communicator(), &communicator_);
  }
  ~MpiPersistent() override {
    for (auto& [buffers, requests] : requests_) release(requests);
    MPI_Comm_free(&communicator_);
  }
  MpiPersistent(const MpiPersistent&) = delete;
  MpiPersistent& operator=(const MpiPersistent&) = delete;

  void prepare(const Operands& o) override { requests_for(o); }

  void run(const Operands& o) override {
    for (MPI_Request& request : requests_for(o)) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (problem_.operation == Operation::mean) divide(o.output, problem_.count, group_.ranks());
  }

 private:
  using Buffers = std::pair<const float*, float*>;  // input and output
  using Requests = std::vector<MPI_Request>;        // one for each longest_message floats
  static constexpr std::size_t most_pairs = 4096;

  Requests& requests_for(const Operands& o) {
    const Buffers buffers{o.input, o.output};
    const auto found = requests_.find(buffers);
    if (found != requests_.end()) return found->second;
    if (order_.size() < most_pairs) {
      order_.push_back(buffers);
    } else {
      const auto oldest = requests_.find(order_[next_]);
      release(oldest->second);
      requests_.erase(oldest);
      order_[next_] = buffers;
      next_ = (next_ + 1) % most_pairs;
    }
    return requests_.emplace(buffers, make_requests(o)).first->second;
  }

  Requests make_requests(const Operands& o) const {
    Requests requests;
    for (std::int64_t at = 0; at < problem_.count; at += longest_message) {
      const int length = static_cast<int>(std::min(longest_message, problem_.count - at));
      const void* input = o.input == o.output ? MPI_IN_PLACE : o.input + at;
      requests.push_back(MPI_REQUEST_NULL);
      allreduce_init(input, o.output + at, length, MPI_FLOAT, MPI_SUM, communicator_, MPI_INFO_NULL,
                     &requests.back());
    }
    return requests;
  }

  static void release(Requests& requests) {
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }

  Problem problem_;
  Group group_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::map<Buffers, Requests> requests_;
  std::vector<Buffers> order_;  // of the pairs, by age
  std::size_t next_ = 0;        // the oldest, once there are most_pairs
};

constexpr VariantInfo info{
    .name = "mpi_persistent",
    .technique = Technique::vendor,
    .adds = "MPI_Allreduce_init once for a pair of buffers; each run starts it and waits",
};

const Registration registration{info, make_plan<AllReduce, MpiPersistent>};

}  // namespace
}  // namespace stepladder::all_reduce
