// Emulates kernels/common/cuda/async_copy.hpp. The destination of a copy is NaN from the call until
// its thread has waited for it, which reveals reads that come too early and reads of old data.
#pragma once

#include <cuda_runtime.h>

namespace stepladder {

template <int bytes>
void copy_async(void* shared, const void* global, int valid = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  simt::copy_later(shared, global, bytes, static_cast<std::size_t>(valid));
}

inline void copy_async_zfill(void* shared, const void* global, bool is_valid) {
  simt::copy_later(shared, global, 16, is_valid ? 16 : 0);
}

inline void commit_copies() { simt::group_copies(); }

template <int pending>
void wait_for_copies() {
  simt::finish_copies(pending);
}

}  // namespace stepladder
