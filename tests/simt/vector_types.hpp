// dim3, float4 and the other vector types of CUDA's cuda_runtime.h.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

namespace stepladder::simt {

// A GPU cannot access a vector at an address that is not a multiple of its size; the CPU can.
template <class Vector>
void expect_aligned(std::uintptr_t address) {
  asm("" : "+r"(address));  // keeps the compiler from inferring alignment from the type
  if (address % alignof(Vector) != 0)
    throw std::runtime_error("a vector of " + std::to_string(sizeof(Vector)) + " bytes is " +
                             std::to_string(address % alignof(Vector)) +
                             " bytes off a multiple of its size");
}

template <class T>
struct alignas(2 * sizeof(T)) Vector2 {
  T x, y;
  Vector2() = default;
  Vector2(T x_, T y_) : x(x_), y(y_) {}
  Vector2(const Vector2& from) { *this = from; }
  Vector2& operator=(const Vector2& from) {
    expect_aligned<Vector2>(reinterpret_cast<std::uintptr_t>(this));
    expect_aligned<Vector2>(reinterpret_cast<std::uintptr_t>(&from));
    x = from.x, y = from.y;
    return *this;
  }
};

template <class T>
struct alignas(4 * sizeof(T)) Vector4 {
  T x, y, z, w;
  Vector4() = default;
  Vector4(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {}
  Vector4(const Vector4& from) { *this = from; }
  Vector4& operator=(const Vector4& from) {
    expect_aligned<Vector4>(reinterpret_cast<std::uintptr_t>(this));
    expect_aligned<Vector4>(reinterpret_cast<std::uintptr_t>(&from));
    x = from.x, y = from.y, z = from.z, w = from.w;
    return *this;
  }
};

}  // namespace stepladder::simt

using float2 = stepladder::simt::Vector2<float>;
using float4 = stepladder::simt::Vector4<float>;
using int2 = stepladder::simt::Vector2<int>;
using int4 = stepladder::simt::Vector4<int>;
using uint2 = stepladder::simt::Vector2<unsigned>;
using uint4 = stepladder::simt::Vector4<unsigned>;
using uchar4 = stepladder::simt::Vector4<unsigned char>;

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
  return {x, y, z, w};
}
