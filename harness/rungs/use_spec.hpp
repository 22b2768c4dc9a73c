// The rung that each primitive of a step uses: "best", "openmp", "best,convolution=direct".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/problem/primitive_type.hpp"

namespace stepladder {

class UseSpec {
 public:
  // A rung for all primitives and exceptions as primitive=rung, separated by commas. Throws
  // UnknownName if there is no such primitive, or no such rung in any ladder, and
  // std::invalid_argument for bf16 and int8 on a CPU without their instructions.
  explicit UseSpec(const std::string& text);

  const std::string& text() const { return text_; }
  UseSpec with(const std::string& primitive, const std::string& rung) const;

  // The same for weights that do not change: best and vendor also choose among prepacked rungs.
  UseSpec of_constant_weights() const;

  bool selects_best(const std::string& primitive) const { return rung_of(primitive) == "best"; }
  bool selects_vendor(const std::string& primitive) const { return rung_of(primitive) == "vendor"; }

  // The variants to choose from. If there are several, the fastest for the problem is used.
  //   best            the CPU rungs without vendor libraries, serial rungs, Pthreads rungs (their
  //                   waiting threads compete with OpenMP's for cores) and, unless the weights
  //                   are constant, prepacked rungs (the weights change with every step)
  //   bf16            those, and the ones that round operands to bf16: weights, activations and
  //                   messages between ranks stay fp32
  //   int8            those of best, and the ones that quantize operands; for constant weights
  //                   alone, std::invalid_argument otherwise
  //   compiler        the serial rungs as the compiler vectorizes them; like best if there are none
  //   vendor          the vendor libraries, unless the weights are constant without prepacking;
  //                   like best if there are none; for a problem that none supports, PlanStore
  //                   takes best too
  //   cuda            the CUDA rungs of fp32 precision, without vendor libraries
  //   cuda_tf32       those, and the ones that convert operands to TF32
  //   anything else   the variant of that name; or the first of that technique; or the first with
  //                   that word in its name (simd_openmp for simd); or the next lower technique
  // Unavailable variants are omitted unless all are unavailable.
  std::vector<Variant> candidates(const PrimitiveType& type) const;

  // Whether a candidate of any primitive of one process runs in several threads.
  bool is_threaded() const;

 private:
  std::string rung_of(const std::string& primitive) const;

  std::string text_, rung_;
  std::map<std::string, std::string> exceptions_;  // primitive -> rung
  bool constant_weights_ = false;
};

}  // namespace stepladder
