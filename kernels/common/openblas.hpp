// The kernels that OpenBLAS uses. On CPUs that are newer than it, those have no AVX: Debian's
// 0.3.21 is then a fifth as fast, on the first Xeons that it does not know.
#pragma once

#include <cstdlib>

#include "kernels/common/isa.hpp"

namespace stepladder {

// To be called before the library is opened. Keeps what the user has set.
inline void choose_openblas_kernels() {
  if (cpu_has(Isa::avx512)) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
}

}  // namespace stepladder
