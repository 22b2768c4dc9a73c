// schedule(static): thread t of T computes the rows from t m / T on. No thread asks for work, but
// the rows differ: the last thread has (2 T - 1) / T² of the triangle, 3/4 with two threads, so the
// gain is T² / (2 T - 1): 1.33 with two threads, T / 2 with many.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/triangle/triangle_rows.hpp"

namespace stepladder::matmul {
namespace {

void multiply_rows(const TriangleRows& rows, const Operands& o) {
#pragma omp for schedule(static)
  for (std::int64_t i = 0; i < rows.count(); ++i) rows.multiply_row(o, i);
}

constexpr VariantInfo info{
    .name = "triangle_static",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "as many neighbouring rows for every thread",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, TrianglePlan<multiply_rows>>};

}  // namespace
}  // namespace stepladder::matmul
