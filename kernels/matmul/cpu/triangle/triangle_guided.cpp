// schedule(guided): a thread that is done takes 1/T of the rows that remain, so the shared counter
// is asked about T log(m / T) times instead of m times. The chunks shrink towards the end. Here the
// rows grow, which suits it: the first m / T rows are the shortest. Were the longest rows first,
// the first chunk would be as large as the largest of triangle_static.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/triangle/triangle_rows.hpp"

namespace stepladder::matmul {
namespace {

void multiply_rows(const TriangleRows& rows, const Operands& o) {
#pragma omp for schedule(guided)
  for (std::int64_t i = 0; i < rows.count(); ++i) rows.multiply_row(o, i);
}

constexpr VariantInfo info{
    .name = "triangle_guided",
    .technique = Technique::openmp,
    .builds_on = "triangle_dynamic",
    .adds = "a thread that is done takes 1/T of the remaining rows",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, TrianglePlan<multiply_rows>>};

}  // namespace
}  // namespace stepladder::matmul
