// What a kernel of lab 10 sees: CUDA, in the emulator of tests/simt, and arrays in global memory
// that count their accesses.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

struct Grid {
  dim3 blocks, threads;  // threads of a block
};

// One access of one thread. The n-th accesses of the 32 threads of a warp are one instruction,
// which moves the sectors of 32 bytes that it touches.
void count_access(const void* address);

template <class T>
class Global {
 public:
  Global(T* data, std::int64_t count) : data_(data), count_(count) {}

  class Element {
   public:
    explicit Element(T* at) : at_(at) {}
    operator float() const {
      count_access(at_);
      return *at_;
    }
    Element& operator=(float value) {
      static_assert(!std::is_const_v<T>, "a and b are read only");
      count_access(at_);
      *at_ = value;
      return *this;
    }
    Element& operator=(const Element& other) { return *this = static_cast<float>(other); }
    Element& operator+=(float value) { return *this = static_cast<float>(*this) + value; }

   private:
    T* at_;
  };

  Element operator[](std::int64_t i) const {
    if (i < 0 || i >= count_) stepladder::simt::fail("an access outside of an array");
    return Element(data_ + i);
  }

 private:
  T* data_;
  std::int64_t count_;
};
