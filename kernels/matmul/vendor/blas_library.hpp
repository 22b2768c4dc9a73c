// A vendor BLAS, opened at run time with local symbols. OpenBLAS, BLIS and MKL all export
// cblas_sgemm; if they were linked, all calls would go to the first.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "kernels/common/shared_library.hpp"
#include "kernels/matmul/cpu/separate_epilogue.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

class BlasLibrary {
 public:
  // Opens the first of `files` that the loader finds. Throws NotHere if there is none, with the
  // first name and the package that contains it.
  BlasLibrary(std::initializer_list<const char*> files, const std::string& package);

  // A function of the library; see SharedLibrary.
  SharedLibrary::Symbol operator[](const char* function) const { return library_[function]; }

  // Sets the threads of later products.
  void set_threads(int threads) const { set_threads_(threads); }

  // C = op(A) op(B) by cblas_sgemm.
  void multiply(const Problem& problem, const Operands& operands) const;

 private:
  // This is the declaration of cblas.h; the order and the transposes are its enums.
  using Sgemm = void(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                     const float* a, int lda, const float* b, int ldb, float beta, float* c,
                     int ldc);

  SharedLibrary library_;
  Sgemm* sgemm_;
  std::function<void(int)> set_threads_;
};

// Throws Unsupported if a dimension does not fit the 32-bit integers of cblas_sgemm.
void require_blas_sizes(const Problem& problem);

// A product by cblas_sgemm and the epilogue after it.
class BlasPlan : public Plan {
 public:
  BlasPlan(const Problem& problem, const Resources& resources, BlasLibrary library)
      : library_(std::move(library)), problem_(problem), threads_(resources.threads) {
    require_blas_sizes(problem);
  }

  void run(const Operands& operands) override {
    library_.set_threads(threads_);  // another plan may have set a different number
    library_.multiply(problem_, operands);
    separate_epilogue(problem_, operands, threads_);
  }

 protected:
  BlasLibrary library_;

 private:
  Problem problem_;
  int threads_;
};

}  // namespace stepladder::matmul
