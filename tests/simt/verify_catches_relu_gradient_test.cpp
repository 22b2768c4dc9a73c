// verify detects faults in matmul's epilogue relu_gradient. Only CUDA variants have it, so the
// faulty variants run on the emulated device, whose memory the CPU can access.
#include <deque>
#include <memory>
#include <vector>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/element.hpp"
#include "kernels/matmul/matmul.hpp"
#include "tests/verdict.hpp"

namespace stepladder::matmul {
namespace {

// C where passes(index) holds, 0 elsewhere.
template <class Passes>
void multiply(const Problem& p, const Operands& o, const Passes& passes) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j)
      o.c[i * p.n + j] = passes(i * p.n + j) ? element(p, o, i, j) : 0;
}

void correct(const Problem& p, const Operands& o) {
  multiply(p, o, [&](std::int64_t at) { return o.y[at] > 0; });
}
void wrong_sign(const Problem& p, const Operands& o) {
  multiply(p, o, [&](std::int64_t at) { return o.y[at] < 0; });
}
void zero_passes(const Problem& p, const Operands& o) {
  multiply(p, o, [&](std::int64_t at) { return o.y[at] >= 0; });
}
void no_mask(const Problem& p, const Operands& o) {
  multiply(p, o, [](std::int64_t) { return true; });
}
void mask_of_the_next_element(const Problem& p, const Operands& o) {
  multiply(p, o, [&](std::int64_t at) { return o.y[(at + 1) % (p.m * p.n)] > 0; });
}
void transposed_mask(const Problem& p, const Operands& o) {
  multiply(p, o, [&](std::int64_t at) { return o.y[at % p.n * p.m + at / p.n] > 0; });
}

Variant on_the_device(const char* name, Factory<Matmul> factory) {
  static std::deque<VariantInfo> infos;  // a Variant points to its own
  Variant variant = unregistered<Matmul>(name, factory);
  VariantInfo& info = infos.emplace_back(*variant.info);
  info.place = Place::cuda;
  variant.info = variant.entry.info = &info;
  return variant;
}

// Large enough that y has all its values, -1 to 2.
std::vector<Problem> problems() {
  std::vector<Problem> all = {{5, 7, 9},
                              {8, 16, 4},
                              {13, 2, 30},
                              {6, 10, 3, true, false},
                              {4, 9, 7, false, true},
                              {6, 11, 8, true, true}};
  for (Problem& p : all) p.epilogue = Epilogue::relu_gradient;
  return all;
}

TEST(VerifyCatchesReluGradient, EveryWrongMask) {
  const struct {
    const char* name;
    Factory<Matmul> factory;
  } faults[] = {
      {"broken_sign", make_cuda_plan<Matmul, wrong_sign>},
      {"broken_zero", make_cuda_plan<Matmul, zero_passes>},
      {"broken_forgotten", make_cuda_plan<Matmul, no_mask>},
      {"broken_next", make_cuda_plan<Matmul, mask_of_the_next_element>},
      {"broken_transposed", make_cuda_plan<Matmul, transposed_mask>},
  };
  for (const auto& [name, factory] : faults) {
    const Variant variant = on_the_device(name, factory);
    for (const Problem& problem : problems())
      EXPECT_TRUE(is_caught<Matmul>(problem, variant, "c["));
  }
}

TEST(VerifyCatchesReluGradient, NothingInACorrectKernel) {
  const Variant variant = on_the_device("correct", make_cuda_plan<Matmul, correct>);
  for (const Problem& problem : problems()) EXPECT_TRUE(passes<Matmul>(problem, variant));
}

}  // namespace
}  // namespace stepladder::matmul
