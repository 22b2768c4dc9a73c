// NCCL's all-reduce between the GPUs of one process, with the algorithm that NCCL chooses. The mean
// divides its sum: NCCL's own average multiplies by the reciprocal, which rounds twice.
#include <nccl.h>

#include <map>
#include <vector>

#include "kernels/all_reduce/cuda/gpu_group.hpp"
#include "kernels/common/shared_library.hpp"

namespace stepladder::all_reduce {
namespace {

// The library, and its communicators by number of ranks. All plans share them, since creating them
// takes seconds; they live as long as the process.
class Nccl {
 public:
  static Nccl& instance() {
    static Nccl nccl;
    return nccl;
  }

  const std::vector<ncclComm_t>& communicators(int ranks) {
    std::vector<ncclComm_t>& all = communicators_[ranks];
    if (all.empty()) {
      std::vector<ncclComm_t> created(static_cast<std::size_t>(ranks));
      check("ncclCommInitAll", init_all_(created.data(), ranks, nullptr));  // null: the first GPUs
      STEPLADDER_CUDA_CHECK(cudaSetDevice(0));
      all = std::move(created);
    }
    return all;
  }

  void sum(const std::vector<ncclComm_t>& communicators, const Problem& p,
           const Operands& o) const {
    check("ncclGroupStart", group_start_());
    for (int rank = 0; rank < p.ranks; ++rank)
      check("ncclAllReduce", all_reduce_(o.of_gpu[rank].input, o.of_gpu[rank].output,
                                         static_cast<std::size_t>(p.count), ncclFloat, ncclSum,
                                         communicators[rank], gpu_stream(rank)));
    check("ncclGroupEnd", group_end_());
  }

 private:
  Nccl() = default;

  void check(const char* call, ncclResult_t status) const {
    if (status != ncclSuccess)
      throw std::runtime_error(std::string(call) + ": " + message_(status));
  }

  SharedLibrary library_{"libnccl.so." + std::to_string(NCCL_MAJOR)};
  decltype(&::ncclCommInitAll) init_all_ = library_["ncclCommInitAll"];
  decltype(&::ncclGroupStart) group_start_ = library_["ncclGroupStart"];
  decltype(&::ncclGroupEnd) group_end_ = library_["ncclGroupEnd"];
  decltype(&::ncclAllReduce) all_reduce_ = library_["ncclAllReduce"];
  decltype(&::ncclGetErrorString) message_ = library_["ncclGetErrorString"];
  std::map<int, std::vector<ncclComm_t>> communicators_;
};

__global__ void __launch_bounds__(block_threads)
    divide_kernel(float* values, std::int64_t count, float divisor) {
  const std::int64_t i = thread_index();
  if (i < count) values[i] /= divisor;
}

class NcclPlan final : public Plan {
 public:
  NcclPlan(const Problem& problem, const Resources&)
      : problem_(problem),
        group_(problem),
        communicators_(Nccl::instance().communicators(problem.ranks)) {}

  void run(const Operands& o) override {
    if (problem_.count == 0) return;
    group_.start();
    Nccl::instance().sum(communicators_, problem_, o);
    if (problem_.operation == Operation::mean)
      for (int rank = 0; rank < problem_.ranks; ++rank) {
        const CurrentGpu here(rank);
        launch_on(gpu_stream(rank), divide_kernel, {blocks_for(problem_.count), block_threads},
                  o.of_gpu[rank].output, problem_.count, static_cast<float>(problem_.ranks));
      }
    group_.finish();
  }

 private:
  Problem problem_;
  GpuGroup group_;
  const std::vector<ncclComm_t>& communicators_;
};

constexpr VariantInfo info{
    .name = "nccl",
    .technique = Technique::vendor,
    .adds = "NCCL's all-reduce between the GPUs of one process",
    .place = Place::cuda,
};

const Registration registration{info, make_plan<AllReduce, NcclPlan>};

}  // namespace
}  // namespace stepladder::all_reduce
