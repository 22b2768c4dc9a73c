// Case for any primitive. The adapter of the primitive, in harness/adapters/<primitive>.cpp, lists
// its operands, fills them and computes the expected results.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>

#include "harness/adapters/make_case.hpp"
#include "harness/io/hash.hpp"
#include "harness/problem/guarded_buffer.hpp"
#include "harness/problem/random.hpp"

namespace stepladder {

enum class Role { unused, input, output, in_out };

struct OperandInfo {
  std::string name;
  std::int64_t count;  // elements
  Role role;
  std::size_t element = 4;  // bytes: 4 for float, 1 for std::uint8_t
  int device = 0;           // whose memory it is in, unless it is in host memory
  int replica_of = -1;      // the operand that it must equal bit for bit

  std::size_t bytes() const { return static_cast<std::size_t>(count) * element; }
  bool is_used() const { return role != Role::unused; }
  bool is_result() const { return role == Role::output || role == Role::in_out; }
};

// A result is correct if |got - value| <= bound in each element. With `change`, got is the amount
// added to the former content.
struct Expected {
  std::vector<double> value;
  std::vector<float> bound;
  double unit = 0;  // bound / magnitude if the result is a sum of products, else 0
  bool change = false;
};

// The content of each operand as filled, in host memory.
using Contents = std::vector<std::vector<std::byte>>;
inline float* floats(Contents& contents, std::size_t operand) {
  return reinterpret_cast<float*>(contents[operand].data());
}

// A struct of static functions. All vectors have one element for each operand of the primitive, in
// the order of the adapter's enumeration `Operand`. A problem may leave operands unused.
template <class A>
concept Adapter = requires(const typename A::Primitive::Problem& problem,
                           const typename A::Primitive::Operands& operands,
                           const std::vector<void*>& pointers, Tier tier, Random& random,
                           Contents& contents, std::vector<Expected>& expected) {
  { A::operands(problem) } -> std::same_as<std::vector<OperandInfo>>;
  // The kernel's operands, from a pointer to each (null if unused), and the pointers from them.
  { A::bind(problem, pointers) } -> std::same_as<typename A::Primitive::Operands>;
  { A::pointers(problem, operands) } -> std::same_as<std::vector<const void*>>;
  // Draws the inputs.
  { A::fill(problem, tier, random, contents) } -> std::same_as<void>;
  // Computes the results.
  { A::expect(problem, tier, contents, expected) } -> std::same_as<void>;
  { A::has_exact_tier(problem) } -> std::same_as<bool>;
};

template <Adapter A>
std::vector<Access> accesses_of(const typename A::Primitive::Problem& problem,
                                const typename A::Primitive::Operands& operands) {
  const std::vector<OperandInfo> infos = A::operands(problem);
  const std::vector<const void*> pointers = A::pointers(problem, operands);
  std::vector<Access> all;
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].is_used())
      all.push_back({static_cast<const std::byte*>(pointers.at(i)), infos[i].bytes(),
                     infos[i].role != Role::input});
  return all;
}

template <Adapter A>
class TypedCase : public Case {
 public:
  using Primitive = typename A::Primitive;
  using Problem = typename Primitive::Problem;
  using Operands = typename Primitive::Operands;

  TypedCase(Problem problem, ProblemInfo info)
      : problem_(problem), operands_(A::operands(problem)) {
    info_ = std::move(info);
  }

  double operand_bytes() const override {
    double bytes = 0;
    for (const OperandInfo& operand : operands_)
      if (operand.is_used()) bytes += static_cast<double>(operand.bytes());
    return bytes;
  }

  double memory_needed(std::size_t copies) const override {
    // As filled, as read back, and the copies.
    double bytes = operand_bytes() * (2.0 + static_cast<double>(copies));
    for (const OperandInfo& operand : operands_)
      if (operand.is_result())
        bytes += 20.0 * static_cast<double>(operand.count);  // value, bound, magnitude
    return bytes;
  }

  void allocate(std::size_t copies, Device* device) override {
    sets_.clear();
    for (std::size_t copy = 0; copy < copies; ++copy) {
      Set set;
      std::vector<void*> pointers;
      for (const OperandInfo& operand : operands_) {
        if (!operand.is_used()) {
          pointers.push_back(nullptr);
          set.buffers.emplace_back(0, nullptr);
          continue;
        }
        set.buffers.emplace_back(operand.bytes(),
                                 device == nullptr ? nullptr : stepladder::device(operand.device));
        pointers.push_back(set.buffers.back().data());
      }
      set.operands = A::bind(problem_, pointers);
      sets_.push_back(std::move(set));
    }
  }

  std::size_t copies() const override { return sets_.size(); }

  void fill(Tier tier, std::uint64_t seed) override {
    contents_.resize(operands_.size());
    expected_.assign(operands_.size(), {});
    for (std::size_t i = 0; i < operands_.size(); ++i)
      contents_[i].assign(operands_[i].is_used() ? operands_[i].bytes() : 0, std::byte{0xff});
    Random random(seed, info_.primitive + info_.direction + info_.shape);
    A::fill(problem_, tier, random, contents_);
    A::expect(problem_, tier, contents_, expected_);
  }

  void reset() override {
    for (Set& set : sets_)
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        if (operands_[i].role == Role::input || operands_[i].role == Role::in_out)
          set.buffers[i].write(contents_[i].data());
        else if (operands_[i].role == Role::output)
          set.buffers[i].poison();
      }
  }

  std::unique_ptr<Runner> plan(const Variant& variant, const Resources& resources) override {
    return std::make_unique<TypedRunner>(
        *this, plan_variant<Primitive>(variant.entry, problem_, resources));
  }

  Check check(const VariantInfo& variant, std::size_t copy) override {
    Check result{.passed = true};
    for (std::size_t i = 0; i < operands_.size() && result.passed; ++i) {
      const OperandInfo& operand = operands_[i];
      if (!operand.is_used()) continue;
      const GuardedBuffer& buffer = sets_[copy].buffers[i];
      if (const std::string damage = buffer.guard_damage(); !damage.empty())
        return {.what = fmt::format("{} was {}", operand.name, damage)};
      std::vector<std::byte> got(operand.bytes());
      buffer.read(got.data());
      if (operand.role == Role::input) {
        if (got != contents_[i]) return {.what = fmt::format("input {} was changed", operand.name)};
      } else {
        compare(operand, got, contents_[i], expected_[i], variant, result);
      }
      if (result.passed && operand.replica_of >= 0) {
        std::vector<std::byte> other(got.size());
        sets_[copy].buffers[static_cast<std::size_t>(operand.replica_of)].read(other.data());
        if (got != other)
          return {.what =
                      fmt::format("{} differs from {}", operand.name,
                                  operands_[static_cast<std::size_t>(operand.replica_of)].name)};
      }
    }
    return result;
  }

  std::uint64_t result_hash(std::size_t copy) override {
    std::uint64_t hash = fnv1a_basis;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].is_result()) continue;
      std::vector<std::byte> got(operands_[i].bytes());
      sets_[copy].buffers[i].read(got.data());
      hash = fnv1a(got, hash);
    }
    return hash;
  }

  bool has_exact_tier() const override { return A::has_exact_tier(problem_); }

 private:
  struct Set {
    std::vector<GuardedBuffer> buffers;
    Operands operands;
  };

  class TypedRunner final : public Runner {
   public:
    TypedRunner(TypedCase& owner, std::unique_ptr<PlanOf<Primitive>> plan)
        : owner_(owner), plan_(std::move(plan)) {}
    void prepare() override { plan_->prepare(owner_.sets_.front().operands); }
    void run(std::size_t copy) override { plan_->run(owner_.sets_[copy].operands); }

   private:
    TypedCase& owner_;
    std::unique_ptr<PlanOf<Primitive>> plan_;
  };

  static void compare(const OperandInfo& operand, const std::vector<std::byte>& got_bytes,
                      const std::vector<std::byte>& before_bytes, const Expected& expected,
                      const VariantInfo& variant, Check& result) {
    const auto* got_floats = reinterpret_cast<const float*>(got_bytes.data());
    const auto* before = reinterpret_cast<const float*>(before_bytes.data());
    const auto* got_positions = reinterpret_cast<const unsigned char*>(got_bytes.data());
    // The multiple of the fp32 bound that the variant declares, plus the error of its rounded
    // operands.
    const double factor =
        variant.bound_factor + (expected.unit > 0 ? variant.operand_error / expected.unit : 0);
    // A normwise variant: 2^-24 of the largest magnitude, for every element.
    const double largest = variant.normwise && expected.unit > 0
                               ? *std::max_element(expected.bound.begin(), expected.bound.end()) /
                                     expected.unit * 0x1p-24
                               : 0;
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < operand.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      double got = operand.element == 4 ? double{got_floats[i]} : double(got_positions[i]);
      if (expected.change) got -= double{before[i]};
      const double bound = (variant.normwise ? largest : double{expected.bound[at]}) * factor;
      const double error = std::abs(got - expected.value[at]);
      if (error <= bound) {  // NaN fails here
        if (bound > 0) result.error_ratio = std::max(result.error_ratio, error / bound);
        continue;
      }
      if (wrong++ == 0) {
        result.passed = false;
        result.what =
            fmt::format("{}[{}] is {:.9g}; expected {:.9g}{}", operand.name, i, got,
                        expected.value[at], bound > 0 ? fmt::format(" within {:.3g}", bound) : "");
      }
    }
    if (wrong > 1) result.what += fmt::format(" ({} of {} elements wrong)", wrong, operand.count);
  }

  Problem problem_;
  std::vector<OperandInfo> operands_;
  std::vector<Set> sets_;
  Contents contents_;
  std::vector<Expected> expected_;
};

}  // namespace stepladder
