// Properties of the emulated devices.
#pragma once

namespace stepladder::simt {

inline constexpr int multiprocessors = 8;
inline constexpr int l2_bytes = 1 << 16;

}  // namespace stepladder::simt
