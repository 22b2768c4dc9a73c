// Chooses by the cost model: predicts the time of every rung from the measured links (alpha and
// beta of messages, gamma of additions, as curves over the length) and plans the fastest. The
// choice depends on the count, the number of ranks and the place of the ranks: one node or several.
//
//     T = min over the rungs of their T
//
// All ranks read the same measurements, so they choose alike. Identical bits: those of the chosen
// rung.
#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/isa.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

struct Predicted {
  const detail::Entry* entry;
  double seconds;
};

// Exact rungs whose vectors may live anywhere and whose time the model predicts; fastest first.
std::vector<Predicted> predictions(const CommunicationCost& cost) {
  std::vector<Predicted> all;
  for (const detail::Entry& entry : detail::entries(AllReduce::name)) {
    const VariantInfo& info = *entry.info;
    if (entry.factory == nullptr || entry.cost == nullptr || info.window ||
        info.technique == Technique::vendor || info.precision != Precision::fp32 ||
        info.contraction > 0 || !cpu_has(info.isa))
      continue;
    all.push_back({&entry, entry.cost(cost)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Predicted& a, const Predicted& b) { return a.seconds < b.seconds; });
  return all;
}

double ranks_of_node(const Problem& problem, MPI_Comm communicator) {
  if (problem.node_ranks > 0) return std::min(problem.node_ranks, problem.ranks);
  MPI_Comm node = node_of(communicator);
  int ranks = 1;
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  MPI_Allreduce(MPI_IN_PLACE, &ranks, 1, MPI_INT, MPI_MAX, communicator);
  return ranks;
}

class ByModel final : public Plan {
 public:
  ByModel(const Problem& problem, const Resources& resources) {
    if (problem.gpus) throw Unsupported("its ranks are processes, not the GPUs of one");
    if (resources.links == nullptr) throw Unsupported("the links are not measured (bench does)");
    const CommunicationCost cost{.p = static_cast<double>(problem.ranks),
                                 .n = bytes_read(problem),
                                 .g = ranks_of_node(problem, communicator_of(resources)),
                                 .l = *resources.links};
    for (const Predicted& predicted : predictions(cost)) {
      try {
        plan_ = plan_variant<AllReduce>(*predicted.entry, problem, resources);
        chosen_ = full_name(*predicted.entry->info);
        return;
      } catch (const Unsupported&) {
        // The next one: not every rung supports every placement of the ranks.
      }
    }
    throw Unsupported("no rung with a cost model can run here");
  }

  void run(const Operands& o) override { plan_->run(o); }
  std::string remark() const override { return "chose " + chosen_; }

 private:
  std::unique_ptr<Plan> plan_;
  std::string chosen_;
};

constexpr VariantInfo info{
    .name = "by_model",
    .technique = Technique::mpi,
    .adds = "the rung that the cost model predicts to be the fastest on the measured links",
};

const Registration registration{info, make_plan<AllReduce, ByModel>};

}  // namespace
}  // namespace stepladder::all_reduce
