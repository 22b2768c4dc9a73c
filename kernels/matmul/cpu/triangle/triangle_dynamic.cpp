// schedule(dynamic, 1): a thread that is done takes the next row from a shared counter. Threads end
// within one row of each other: T times as fast, 2 - 1/T over triangle_static, 1.5 with two
// threads. Each row costs an atomic addition, whose cache line moves from core to core: about 0.1
// µs. With k = 64 that is a third of a row of 128 elements, and some percent of one of 1024.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/triangle/triangle_rows.hpp"

namespace stepladder::matmul {
namespace {

void multiply_rows(const TriangleRows& rows, const Operands& o) {
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < rows.count(); ++i) rows.multiply_row(o, i);
}

constexpr VariantInfo info{
    .name = "triangle_dynamic",
    .technique = Technique::openmp,
    .builds_on = "triangle_static",
    .adds = "a thread that is done takes the next row",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, TrianglePlan<multiply_rows>>};

}  // namespace
}  // namespace stepladder::matmul
