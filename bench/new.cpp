// operator new of the program, whose error says what was asked for. Its memory is that of malloc,
// as the operator delete of the library expects. Sanitizers have their own.
#include <cstdlib>
#include <new>

#include "kernels/common/out_of_memory.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t bytes) {
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw stepladder::OutOfMemory(bytes);
}

#endif
