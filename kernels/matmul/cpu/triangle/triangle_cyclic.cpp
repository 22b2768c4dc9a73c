// schedule(static, 1): rows are dealt like cards. This takes knowing how the work varies: where
// neighbouring rows are nearly equal, threads get nearly equal sums, and no counter is needed. It
// fails where the work of row i depends on i mod T.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/triangle/triangle_rows.hpp"

namespace stepladder::matmul {
namespace {

class TriangleCyclic final : public Plan {
 public:
  TriangleCyclic(const Problem& problem, const Resources& resources)
      : rows_(problem), threads_(resources.threads) {}

  void run(const Operands& o) override {
#pragma omp parallel num_threads(threads_)
    {
      rows_.transpose_b(o);
#pragma omp for schedule(static, 1)
      for (std::int64_t i = 0; i < rows_.count(); ++i) rows_.multiply_row(o, i);
    }
  }

 private:
  TriangleRows rows_;
  int threads_;
};

constexpr VariantInfo info{
    .name = "triangle_cyclic",
    .technique = Technique::openmp,
    .builds_on = "triangle_static",
    .adds = "row i for thread i mod T, without asking",
    .isa = build_isa,
    .threaded = true,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, TriangleCyclic>};

}  // namespace
}  // namespace stepladder::matmul
