// One problem of one primitive, ready to verify and time any of its variants: operands in memory,
// expected results, FLOPs and bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// Small integers whose sums are exact in any order, compared bit for bit; or uniform values,
// compared within the primitive's rounding bound.
enum class Tier { exact, accuracy };

// The names of a problem in a result row, and its cost by definition.
struct ProblemInfo {
  std::string primitive, direction, suite, name, shape, layout;
  std::string precision{};  // of the operands; empty: the variant's
  double flops = 0, bytes_read = 0, bytes_written = 0;
  double bus_bytes = 0;     // all_reduce only
  double vector_bytes = 0;  // of the gradient, over several ranks
  int ranks = 1;
  int hosts = 1;  // on which the ranks run
  // Every written cache line was read before: writes cause no additional reads.
  bool in_place = false;
};

// A registry entry, without its primitive's types.
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
  std::string what{};      // the reason if it failed
};

// Of several runs on the same inputs together, for compressors with error feedback.
struct RepeatedReference {
  std::vector<double> expected{};  // result of one run; replicas are left out
  double summand_norms = 0;        // sum over the ranks of the norm of the vector that each adds
};

// A plan bound to the operands of its case.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual void prepare() = 0;
  virtual void run(std::size_t copy) = 0;  // copy < copies of the case
  virtual std::string remark() const = 0;  // of the plan
};

class Case {
 public:
  virtual ~Case() = default;
  const ProblemInfo& info() const { return info_; }

  // Host bytes of allocate(copies, …) and the reference results together.
  virtual double memory_needed(std::size_t copies) const = 0;
  virtual double operand_bytes() const = 0;  // of one copy
  // `copies` sets of operands, for cold-cache timing; in host memory, or in a device's.
  virtual void allocate(std::size_t copies, Device* device) = 0;
  virtual std::size_t copies() const = 0;
  // Frees the operands and the reference results: many problems wait for their next visit.
  // Collective if ranks share operands. After it, allocate() and fill() come first again.
  virtual void release() = 0;
  // Draws the inputs and computes the reference. Every value depends on the seed and the problem
  // only.
  virtual void fill(Tier tier, std::uint64_t seed) = 0;
  // Inputs as filled, outputs poisoned: in copy 0, or in all copies, which may be gigabytes.
  virtual void reset() = 0;
  virtual void reset_all() = 0;
  virtual void reset_to_zero() = 0;  // the same with inputs of zeros, in copy 0
  // Between runs of a plan, which is not told. Undoes the last change of the copy; unless `number`
  // is 0, sets one element of an input, or up to `elements` of each, to values that depend on
  // `number`: of the first input alone where the plan has packed the others.
  virtual void change(const VariantInfo& variant, std::size_t copy, std::uint64_t number,
                      int elements) = 0;
  // As many accesses as a change takes, to the elements that the numbers before and at `number`
  // would change; they keep their values.
  virtual void touch(const VariantInfo& variant, std::size_t copy, std::uint64_t number,
                     int elements) = 0;
  virtual void restore(const VariantInfo& variant, std::size_t copy) = 0;  // reset() of one copy
  // Whether each of several runs on the same operands has the expected results.
  virtual bool is_repeatable(const VariantInfo& variant) const = 0;
  // Poisons a few elements of each output; then says which of them is still so, or nothing.
  virtual void poison_samples(const VariantInfo& variant, std::size_t copy) = 0;
  virtual std::string poisoned_sample(const VariantInfo& variant, std::size_t copy) = 0;
  // Throws Unsupported.
  virtual std::unique_ptr<Runner> plan(const Variant& variant, const Resources& resources) = 0;
  // Checks the operands after run(copy): results, guard zones, unchanged inputs. The results of a
  // variant with .contraction are not compared.
  virtual Check check(const VariantInfo& variant, std::size_t copy) = 0;
  // Distance of the results from the expected ones over the norm of these, after run(copy) of a
  // variant that compresses messages; 0 for any other.
  virtual double relative_error(const VariantInfo& variant, std::size_t copy) = 0;
  // Hash of the results, the same on all ranks of an all-reduce.
  virtual std::uint64_t result_hash(const VariantInfo& variant, std::size_t copy) = 0;
  virtual bool has_exact_tier() const = 0;
  virtual RepeatedReference repeated_reference() const = 0;
  // Adds the results to `sums`, in the order of RepeatedReference.
  virtual void add_results(const VariantInfo& variant, std::size_t copy,
                           std::vector<double>& sums) = 0;

 protected:
  ProblemInfo info_;
};

}  // namespace stepladder
