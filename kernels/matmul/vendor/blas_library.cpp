#include "kernels/matmul/vendor/blas_library.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace stepladder::matmul {
namespace {

SharedLibrary open_first(std::initializer_list<const char*> files, const std::string& package) {
  for (const char* file : files) {
    try {
      return SharedLibrary(file, own_functions_first);
    } catch (const Unsupported&) {
      // try the next one
    }
  }
  throw NotHere(std::string(*files.begin()) + " not found (" + package + ")");
}

// The library's function that sets the number of threads, else OpenMP's. Their arguments differ.
std::function<void(int)> thread_setter(const SharedLibrary& library) {
  for (const char* name : {"openblas_set_num_threads", "MKL_Set_Num_Threads"})
    if (library.has(name)) return static_cast<void (*)(int)>(library[name]);
  constexpr const char* blis = "bli_thread_set_num_threads";
  if (library.has(blis)) return static_cast<void (*)(std::int64_t)>(library[blis]);
  return omp_set_num_threads;
}

}  // namespace

BlasLibrary::BlasLibrary(std::initializer_list<const char*> files, const std::string& package)
    : library_(open_first(files, package)),
      sgemm_(library_["cblas_sgemm"]),
      set_threads_(thread_setter(library_)) {}

void BlasLibrary::multiply(const Problem& p, const Operands& o) const {
  constexpr int row_major = 101, no_transpose = 111, transpose = 112;
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  sgemm_(row_major, p.transpose_a ? transpose : no_transpose,
         p.transpose_b ? transpose : no_transpose, m, n, k, 1.0f, o.a, p.transpose_a ? m : k, o.b,
         p.transpose_b ? k : n, 0.0f, o.c, n);
}

void require_blas_sizes(const Problem& p) {
  if (std::max({p.m, p.n, p.k}) > std::numeric_limits<int>::max())
    throw Unsupported("a dimension exceeds 2147483647, the limit of cblas_sgemm");
}

}  // namespace stepladder::matmul
