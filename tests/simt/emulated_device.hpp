// What the emulator says of its devices.
#pragma once

namespace stepladder::simt {

inline constexpr int multiprocessors = 8;

}  // namespace stepladder::simt
