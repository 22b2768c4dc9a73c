// Fibers: computations with stacks of their own that switch to each other. x86-64 only.
#pragma once

#include <cstddef>
#include <span>

namespace stepladder::simt {

struct Fiber {
  void* stack_pointer = nullptr;
  std::span<std::byte> stack{};  // empty for the fiber that runs on the stack of an OS thread

  // The first switch to this fiber calls body(), which must not return.
  void prepare(std::span<std::byte> memory, void (*body)());
};

// Continues `to`; returns when another fiber switches to `from`.
void switch_fiber(Fiber& from, Fiber& to);

// body() must call this first, with the fiber that switched to it: it tells AddressSanitizer about
// the switch.
void finish_first_switch(Fiber& from);

}  // namespace stepladder::simt
