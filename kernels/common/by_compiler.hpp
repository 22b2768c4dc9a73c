// What the compiler makes of a serial rung: its file once more, with the flags of an ISA and with
// automatic vectorization, which the rung itself is built without. The build (cmake/Variants.cmake)
// writes, for each serial CPU rung and each ISA that it builds, a file of this kind:
//
//     #define Registration ByCompiler
//     #include "kernels/matmul/cpu/blocked.cpp"
//
// It registers blocked_o3_avx512, a rung above `blocked`, built without OpenMP: its pragmas do not
// count. A file with `#pragma omp simd` is built once more with OpenMP, as
// blocked_omp_simd_avx512: there the programmer vouches for the independence of the iterations, and
// allows other orders of a sum.
#pragma once

#include "kernels/common/variant.hpp"

namespace stepladder {

namespace detail {
// Not inline, as add().
void add_by_compiler(const char* primitive, const VariantInfo& serial, AnyFunction factory, Isa isa,
                     bool has_pragmas);
}  // namespace detail

inline namespace STEPLADDER_ISA {

// Takes the place of a serial rung's stepladder::Registration<Primitive>.
template <class Registration, bool has_pragmas>
class ByCompiler;
template <class Primitive, bool has_pragmas>
class ByCompiler<Registration<Primitive>, has_pragmas> {
 public:
  ByCompiler(const VariantInfo& info, Factory<Primitive> factory) {
    detail::add_by_compiler(Primitive::name, info, reinterpret_cast<detail::AnyFunction>(factory),
                            build_isa, has_pragmas);
  }
};

}  // namespace STEPLADDER_ISA
}  // namespace stepladder
