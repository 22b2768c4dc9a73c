// A point in a computation with a stack of its own, to be left and come back to. x86-64 alone, as
// all of stepladder is.
#pragma once

#include <cstddef>
#include <span>

namespace stepladder::simt {

struct Fiber {
  void* stack_pointer = nullptr;
  std::span<std::byte> stack{};  // empty for the fiber that a thread of the system began with

  // body() begins at the first switch to this fiber; it never returns.
  void prepare(std::span<std::byte> memory, void (*body)());
};

// Goes on in `to`; comes back when someone switches to `from`.
void switch_fiber(Fiber& from, Fiber& to);

// What body() calls first, with the fiber that switched to it: AddressSanitizer learns where it is.
void arrive_from(Fiber& from);

}  // namespace stepladder::simt
