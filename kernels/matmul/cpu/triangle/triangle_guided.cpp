// schedule(guided): a thread that is done takes 1/T of the rows that remain, so the shared counter
// is asked T log(m) times instead of m times. The chunks shrink towards the end. Here the rows
// grow, which suits it: the first m / T rows are the shortest. Were the longest rows first, the
// first chunk would be as large as the largest of triangle_static.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/triangle/triangle_rows.hpp"

namespace stepladder::matmul {
namespace {

class TriangleGuided final : public Plan {
 public:
  TriangleGuided(const Problem& problem, const Resources& resources)
      : rows_(problem), threads_(resources.threads) {}

  void run(const Operands& o) override {
#pragma omp parallel num_threads(threads_)
    {
      rows_.transpose_b(o);
#pragma omp for schedule(guided)
      for (std::int64_t i = 0; i < rows_.count(); ++i) rows_.multiply_row(o, i);
    }
  }

 private:
  TriangleRows rows_;
  int threads_;
};

constexpr VariantInfo info{
    .name = "triangle_guided",
    .technique = Technique::openmp,
    .builds_on = "triangle_dynamic",
    .adds = "a thread that is done takes 1/T of the remaining rows",
    .isa = build_isa,
    .threaded = true,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, TriangleGuided>};

}  // namespace
}  // namespace stepladder::matmul
