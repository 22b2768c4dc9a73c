// kernels/common/cuda/async_copy.hpp on the CPU. What a copy writes is NaN from the call until its
// thread has waited for it: it shows who reads too early, and who still reads what was there before.
#pragma once

#include <cuda_runtime.h>

namespace stepladder {

template <int bytes>
void copy_async(void* shared, const void* global, int valid = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  simt::copy_later(shared, global, bytes, static_cast<std::size_t>(valid));
}

inline void copy_async_or_zeros(void* shared, const void* global, bool is_there) {
  simt::copy_later(shared, global, 16, is_there ? 16 : 0);
}

inline void commit_copies() { simt::group_copies(); }

template <int newest>
void wait_for_copies() {
  simt::finish_copies(newest);
}

}  // namespace stepladder
