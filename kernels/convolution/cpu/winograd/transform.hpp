// The transforms of winograd_points.hpp on vectors in memory, one independent problem in each lane. The
// steps are from one vector to the next, in floats.
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "kernels/convolution/winograd_points.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <int pairs>
class WinogradTransform {
  using Points = WinogradPoints<Vector, pairs>;

 public:
  static constexpr int tile = Points::tile;

  // [tile] -> [tile]
  static void source(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
    Vector d[tile], v[tile];
    load(from, from_step, d);
    Points::source(d, v);
    store(v, to, to_step);
  }

  // [n] -> [tile]
  template <int n>
  static void evaluate(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
    Vector g[n], v[tile];
    load(from, from_step, g);
    Points::evaluate(g, v);
    store(v, to, to_step);
  }

  // [tile] -> [n]
  template <int n>
  static void combine(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
    Vector products[tile], sums[n];
    load(from, from_step, products);
    Points::combine(products, sums);
    store(sums, to, to_step);
  }

 private:
  template <int n>
  static void load(const float* from, std::int64_t step, Vector (&vectors)[n]) {
    for (int i = 0; i < n; ++i) vectors[i] = Vector::load_aligned(from + i * step);
  }
  template <int n>
  static void store(const Vector (&vectors)[n], float* to, std::int64_t step) {
    for (int i = 0; i < n; ++i) vectors[i].store_aligned(to + i * step);
  }
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA
