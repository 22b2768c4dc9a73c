// The plan of the packed products of bf16 and int8, on vectors and on AMX.
#pragma once

#include "kernels/common/cpu/narrow/packed_product.hpp"
#include "kernels/matmul/cpu/separate_epilogue.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// Source: the operands (kernels/common/cpu/narrow/packed_product.hpp).
template <class Dot, class Kernel, class Source, bool prepacks = false>
class NarrowProduct final : public Plan {
 public:
  NarrowProduct(const Problem& problem, int threads)
      : problem_(problem), threads_(threads), product_(Source(problem), threads) {}

  void prepare(const Operands& operands) override { product_.prepare(operands); }

  void run(const Operands& operands) override {
    product_.run(operands);
    separate_epilogue(problem_, operands, threads_);
  }

 private:
  Problem problem_;
  int threads_;
  narrow::PackedProduct<Dot, Kernel, Source, prepacks> product_;
};

}  // namespace stepladder::matmul
