// One problem of one primitive, made ready for proving and timing any of its variants: the operands
// in memory, what they must hold afterwards, and the problem's own FLOPs and bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// Small integers whose sums are exact in any order, compared bit for bit; or uniform(-1, 1) compared
// within the primitive's rounding bound.
enum class Tier { exact, accuracy };

// What names a problem in a result row, and what it costs by definition.
struct ProblemInfo {
  std::string primitive, direction, suite, name, shape, layout;
  double flops = 0, bytes_read = 0, bytes_written = 0;
  double bus_bytes = 0;  // all_reduce only
  int ranks = 1;
  bool in_place =
      false;  // what is written was read: memory fetches no line for the sake of a write
};

// A registry entry as the harness sees it, without its primitive's types.
struct Variant {
  std::string primitive;
  std::string name;  // full name, with the ISA it was built for
  const VariantInfo* info;
  detail::Entry entry;
  std::string why_unavailable;  // empty when this machine and build can run it
};

struct Check {
  bool passed = false;
  double error_ratio = 0;  // largest error / bound; 0 in the exact tier
  std::string what{};      // why it failed
};

// A plan bound to the operands of its case.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual void prepare() = 0;
  virtual void run(std::size_t copy) = 0;  // copy < copies of the case
};

class Case {
 public:
  virtual ~Case() = default;
  const ProblemInfo& info() const { return info_; }

  // Host bytes that allocate(copies, …) and reference results take together.
  virtual double memory_needed(std::size_t copies) const = 0;
  virtual double operand_bytes() const = 0;  // of one copy
  // Operands in host memory, or in a device's; `copies` sets of them for cold-cache timing.
  virtual void allocate(std::size_t copies, Device* device) = 0;
  virtual std::size_t copies() const = 0;
  // Draws inputs and computes the reference. The seed and the problem decide every value.
  virtual void fill(Tier tier, std::uint64_t seed) = 0;
  // Inputs as filled, outputs poisoned, in every copy.
  virtual void reset() = 0;
  // Throws Unsupported.
  virtual std::unique_ptr<Runner> plan(const Variant& variant, const Resources& resources) = 0;
  // Judges the operands after run(copy): results, guard zones, inputs unchanged.
  virtual Check check(const VariantInfo& variant, std::size_t copy) = 0;
  // Hash of the results, the same on all ranks of an all-reduce.
  virtual std::uint64_t result_hash(std::size_t copy) = 0;
  virtual bool has_exact_tier() const = 0;

 protected:
  ProblemInfo info_;
};

}  // namespace stepladder
