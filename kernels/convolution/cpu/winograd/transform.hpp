// The transforms of winograd_points.hpp on vectors in memory: each lane is an independent
// transform. Steps are the distances between vectors, in floats.
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
    Vector products[tile], outputs[n];
    load(from, from_step, products);
    Points::combine(products, outputs);
    store(outputs, to, to_step);
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
