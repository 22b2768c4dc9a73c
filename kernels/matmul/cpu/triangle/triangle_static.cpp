// schedule(static): thread t of T computes the rows from t m / T on. No thread asks for work, but
// the rows differ: the last thread has (2 T - 1) / T² of the triangle, 3/4 with two threads, so the
// gain is T² / (2 T - 1): 1.33 with two threads, T / 2 with many.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/triangle/triangle_rows.hpp"

namespace stepladder::matmul {
namespace {

class TriangleStatic final : public Plan {
 public:
  TriangleStatic(const Problem& problem, const Resources& resources)
      : rows_(problem), threads_(resources.threads) {}

  void run(const Operands& o) override {
#pragma omp parallel num_threads(threads_)
    {
      rows_.transpose_b(o);
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < rows_.count(); ++i) rows_.multiply_row(o, i);
    }
  }

 private:
  TriangleRows rows_;
  int threads_;
};

constexpr VariantInfo info{
    .name = "triangle_static",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "as many neighbouring rows for every thread",
    .isa = build_isa,
    .threaded = true,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, TriangleStatic>};

}  // namespace
}  // namespace stepladder::matmul
