// Which rung each primitive of a step uses: "best", "openmp", "best,convolution=direct".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/problem/primitives.hpp"

namespace stepladder {

class UseSpec {
 public:
  // A rung for all primitives, then exceptions as primitive=rung, separated by commas. Throws UnknownName for
  // a primitive or a rung that no ladder has.
  explicit UseSpec(const std::string& text);

  const std::string& text() const { return text_; }
  UseSpec with(const std::string& primitive, const std::string& rung) const;

  bool asks_for_best(const std::string& primitive) const { return rung_of(primitive) == "best"; }

  // The variants to choose from; the fastest on the problem wins when there are several.
  //   best            every rung of our own but the serial ones and those of Pthreads, whose team
  //                   would wait for work on the cores that OpenMP's works on, and those that
  //                   pack beforehand, since weights change with every step
  //   vendor          the vendor's but those; of a primitive without any, as best
  //   cuda            the CUDA ladder's own rungs of fp32 precision
  //   anything else   a variant of that name; or the first of that technique; or one with the word in its
  //                   name (simd_openmp for simd); or the nearest lower technique that the ladder has
  // Unavailable ones are left out unless nothing else remains.
  std::vector<Variant> candidates(const PrimitiveType& type) const;

 private:
  std::string rung_of(const std::string& primitive) const;

  std::string text_, rung_;
  std::map<std::string, std::string> exceptions_;  // primitive -> rung
};

}  // namespace stepladder
