// SUMMA with the next panels on their way while the present ones are multiplied. Two buffers for
// the panels of each operand: the broadcasts of step s + 1 (MPI_Ibcast) start before the product of
// step s and end after it. MPI libraries move messages inside MPI calls alone, so the product is
// computed in strips of columns, with MPI_Testall after each.
//
//     T = t_comm + (steps - 1) max(t_comm, t_product) + t_product        of one step each
//
// in place of steps (t_comm + t_product): at most twice as fast, where both take as long. Within a
// host a message is a copy that the core itself makes, and only the waiting for slower ranks is
// hidden.
#include <array>

#include "kernels/common/mpi.hpp"
#include "kernels/matmul/mpi/panel_steps.hpp"

namespace stepladder::matmul {
namespace {

class SummaOverlap final : public Plan {
 public:
  SummaOverlap(const Problem& problem, const Resources& resources)
      : steps_(problem, communicator_of(resources), 2) {}

  void run(const Operands& o) override {
    Requests requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    Panels present = start(o, 0, requests);
    for (int step = 0; step < steps_.count(); ++step) {
      wait(requests);
      Panels next{};
      if (step + 1 < steps_.count()) next = start(o, step + 1, requests);
      steps_.multiply(present, o.c, step, strips, [&] { make_progress(requests); });
      present = next;
    }
  }

 private:
  using Requests = std::array<MPI_Request, 2>;
  static constexpr int strips = 8;  // of one product

  Panels start(const Operands& o, int step, Requests& requests) {
    const Panels panels = steps_.panels(o, step, step % 2);
    MPI_Ibcast(panels.a.values, panels.a.count, MPI_FLOAT, panels.a.owner, steps_.grid_row(),
               &requests[0]);
    MPI_Ibcast(panels.b.values, panels.b.count, MPI_FLOAT, panels.b.owner, steps_.grid_column(),
               &requests[1]);
    return panels;
  }
  static void wait(Requests& requests) {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  // Completed requests become MPI_REQUEST_NULL, which both calls ignore.
  static void make_progress(Requests& requests) {
    int all = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
  }

  PanelSteps steps_;
};

constexpr VariantInfo info{
    .name = "summa_overlap",
    .technique = Technique::mpi,
    .builds_on = "summa",
    .adds = "the broadcast of the next panels during the product of the present ones",
    .idea = Idea::pipelining,
    .isa = build_isa,
    .over_ranks = true,
    .grid = true,
};

const Registration registration{info, make_plan<Matmul, SummaOverlap>};

}  // namespace
}  // namespace stepladder::matmul
