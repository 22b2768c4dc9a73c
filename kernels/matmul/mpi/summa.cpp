// SUMMA (van de Geijn and Watts, SUMMA: Scalable universal matrix multiplication algorithm, 1997):
// C is a grid of p x q blocks, one per rank. K is passed in panels. In each step a column of ranks
// broadcasts its panel of op(A) along the rows of the grid, and a row of ranks its panel of op(B)
// along the columns; every rank adds the product of both to its block.
//
//              panel of op(B)
//                 |  |  |         P = p q ranks, p = q = s:
//     panel   --  C  C  C         T = 2 m n k / P gamma + (s-1)/P (m k + k n) beta
//     of      --  C  C  C             + 2 k / width log2(s) alpha
//     op(A)   --  C  C  C         alpha: per message, beta: per float, gamma: per FLOP
//
// A rank of mpi_rows receives (P-1)/P k n floats. A rank of the grid receives fewer where m < n s,
// and stores two panels in place of the whole B.
#include "kernels/common/mpi.hpp"
#include "kernels/matmul/mpi/panel_steps.hpp"

namespace stepladder::matmul {
namespace {

class Summa final : public Plan {
 public:
  Summa(const Problem& problem, const Resources& resources)
      : steps_(problem, communicator_of(resources), 1) {}

  void run(const Operands& o) override {
    for (int step = 0; step < steps_.count(); ++step) {
      const Panels panels = steps_.panels(o, step, 0);
      MPI_Bcast(panels.a.values, panels.a.count, MPI_FLOAT, panels.a.owner, steps_.grid_row());
      MPI_Bcast(panels.b.values, panels.b.count, MPI_FLOAT, panels.b.owner, steps_.grid_column());
      steps_.multiply(panels, o.c, step, 1, [] {});
    }
  }

 private:
  PanelSteps steps_;
};

constexpr VariantInfo info{
    .name = "summa",
    .technique = Technique::mpi,
    .builds_on = "mpi_rows",
    .adds = "a grid of ranks: panels of A broadcast along its rows, panels of B along its columns",
    .idea = Idea::processes,
    .isa = build_isa,
    .over_ranks = true,
    .grid = true,
};

const Registration registration{info, make_plan<Matmul, Summa>};

}  // namespace
}  // namespace stepladder::matmul
