// schedule(static, 1): rows are dealt like cards. This takes knowing how the work varies: where
// neighbouring rows are nearly equal, threads get nearly equal sums, and no counter is needed. It
// fails where the work of row i depends on i mod T.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/triangle/triangle_rows.hpp"

namespace stepladder::matmul {
namespace {

void multiply_rows(const TriangleRows& rows, const Operands& o) {
#pragma omp for schedule(static, 1)
  for (std::int64_t i = 0; i < rows.count(); ++i) rows.multiply_row(o, i);
}

constexpr VariantInfo info{
    .name = "triangle_cyclic",
    .technique = Technique::openmp,
    .builds_on = "triangle_static",
    .adds = "row i for thread i mod T, without asking",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, TrianglePlan<multiply_rows>>};

}  // namespace
}  // namespace stepladder::matmul
