#include "tests/simt/fiber.hpp"

#include <cstdint>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the callee-saved registers (System V ABI, AMD64 supplement, 3.2.1) on the old stack, and
// restores them from the new one.
//     void stepladder_switch_stack(void** old_stack, void* new_stack);
asm(R"(
.text
.globl stepladder_switch_stack
.type stepladder_switch_stack, @function
stepladder_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size stepladder_switch_stack, .-stepladder_switch_stack
)");
extern "C" void stepladder_switch_stack(void** old_stack, void* new_stack);

namespace stepladder::simt {

void Fiber::prepare(std::span<std::byte> memory, void (*body)()) {
  stack = memory;
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(memory.data(), memory.size());
#endif
  // The switch pops six registers and returns to body. There the stack pointer must be as after a
  // call, 8 bytes off a multiple of 16.
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size()) / 16 * 16;
  auto* top = reinterpret_cast<void**>(end) - 1;
  *top = nullptr;  // the return address of body()
  *--top = reinterpret_cast<void*>(body);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  stack_pointer = top;
}

void switch_fiber(Fiber& from, Fiber& to) {
#ifdef __SANITIZE_ADDRESS__
  void* frames = nullptr;
  __sanitizer_start_switch_fiber(&frames, to.stack.data(), to.stack.size());
#endif
  stepladder_switch_stack(&from.stack_pointer, to.stack_pointer);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(frames, nullptr, nullptr);
#endif
}

void finish_first_switch([[maybe_unused]] Fiber& from) {
#ifdef __SANITIZE_ADDRESS__
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  from.stack = {static_cast<std::byte*>(const_cast<void*>(bottom)), size};
#endif
}

}  // namespace stepladder::simt
