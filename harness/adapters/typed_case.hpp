// Case for a primitive whose Adapter says what its operands are, how to fill them and what they must
// become. harness/primitives/<primitive>.cpp specialises Adapter.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/problem/case.hpp"
#include "harness/problem/guarded_buffer.hpp"
#include "harness/adapters/types.hpp"
#include "harness/problem/random.hpp"

namespace stepladder {

enum class Role { unused, input, output, in_out };

struct Field {
  std::string name;
  std::int64_t count;
  Role role;
  std::size_t element = 4;  // bytes: 4 for float, 1 for std::uint8_t
  int device = 0;           // whose memory it is in, where operands are in a device's
  int replica_of = -1;      // the field that it must equal bit for bit
};

// What a result must be: |got − value| <= bound, element by element; with `change`, got is what was
// added to the operand's former content.
struct Expected {
  std::vector<double> value;
  std::vector<float> bound;
  double unit = 0;  // bound / magnitude where the result is a sum of products, else 0
  bool change = false;
};

// Pristine host content of each field, as filled.
using Contents = std::vector<std::vector<std::byte>>;
inline float* floats(Contents& contents, std::size_t field) {
  return reinterpret_cast<float*>(contents[field].data());
}

template <class Primitive>
struct Adapter;
// static std::vector<Field> fields(const Problem&);
// static Operands bind(const Problem&, const std::vector<void*>&);   one pointer per field; null if unused
// static std::vector<const void*> pointers(const Problem&, const Operands&);  what bind() was given
// static void fill(const Problem&, Tier, Random&, Contents&);        inputs only
// static void expect(const Problem&, Tier, Contents&, std::vector<Expected>&);  results only
// static bool has_exact_tier(const Problem&);

template <class Primitive>
std::vector<Access> accesses_of(const typename Primitive::Problem& problem,
                                const typename Primitive::Operands& operands) {
  const std::vector<Field> fields = Adapter<Primitive>::fields(problem);
  const std::vector<const void*> pointers = Adapter<Primitive>::pointers(problem, operands);
  std::vector<Access> all;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].role != Role::unused)
      all.push_back({static_cast<const std::byte*>(pointers.at(i)),
                     static_cast<std::size_t>(fields[i].count) * fields[i].element,
                     fields[i].role != Role::input});
  return all;
}

inline double gamma_bound(double terms) {  // Higham: n u / (1 − n u), u = 2^-24
  const double nu = terms * 0x1p-24;
  return nu / (1 - nu);
}

template <class Primitive>
class TypedCase : public Case {
 public:
  using Problem = typename Primitive::Problem;
  using Operands = typename Primitive::Operands;

  TypedCase(Problem problem, ProblemInfo info)
      : problem_(problem), fields_(Adapter<Primitive>::fields(problem)) {
    info_ = std::move(info);
  }

  double operand_bytes() const override {
    double bytes = 0;
    for (const Field& field : fields_)
      if (field.role != Role::unused)
        bytes += static_cast<double>(field.count) * static_cast<double>(field.element);
    return bytes;
  }

  double memory_needed(std::size_t copies) const override {
    double bytes =
        operand_bytes() * (2.0 + static_cast<double>(copies));  // pristine, read back, operands
    for (const Field& field : fields_)
      if (is_result(field))
        bytes += 20.0 * static_cast<double>(field.count);  // value, bound, magnitude
    return bytes;
  }

  void allocate(std::size_t copies, Device* device) override {
    sets_.clear();
    for (std::size_t copy = 0; copy < copies; ++copy) {
      Set set;
      std::vector<void*> pointers;
      for (const Field& field : fields_) {
        if (field.role == Role::unused) {
          pointers.push_back(nullptr);
          set.buffers.emplace_back(0, nullptr);
          continue;
        }
        set.buffers.emplace_back(bytes_of(field),
                                 device == nullptr ? nullptr : stepladder::device(field.device));
        pointers.push_back(set.buffers.back().data());
      }
      set.operands = Adapter<Primitive>::bind(problem_, pointers);
      sets_.push_back(std::move(set));
    }
  }

  std::size_t copies() const override { return sets_.size(); }

  void fill(Tier tier, std::uint64_t seed) override {
    contents_.resize(fields_.size());
    expected_.assign(fields_.size(), {});
    for (std::size_t i = 0; i < fields_.size(); ++i)
      contents_[i].assign(fields_[i].role == Role::unused ? 0 : bytes_of(fields_[i]),
                          std::byte{0xff});
    Random random(seed, info_.primitive + info_.direction + info_.shape);
    Adapter<Primitive>::fill(problem_, tier, random, contents_);
    Adapter<Primitive>::expect(problem_, tier, contents_, expected_);
  }

  void reset() override {
    for (Set& set : sets_)
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        if (fields_[i].role == Role::input || fields_[i].role == Role::in_out)
          set.buffers[i].write(contents_[i].data());
        else if (fields_[i].role == Role::output)
          set.buffers[i].poison();
      }
  }

  std::unique_ptr<Runner> plan(const Variant& variant, const Resources& resources) override {
    return std::make_unique<TypedRunner>(
        *this, plan_variant<Primitive>(variant.entry, problem_, resources));
  }

  Check check(const VariantInfo& variant, std::size_t copy) override {
    Check result{.passed = true};
    for (std::size_t i = 0; i < fields_.size() && result.passed; ++i) {
      const Field& field = fields_[i];
      if (field.role == Role::unused) continue;
      const GuardedBuffer& buffer = sets_[copy].buffers[i];
      if (const std::string damage = buffer.guard_damage(); !damage.empty())
        return {.what = fmt::format("{} was {}", field.name, damage)};
      std::vector<std::byte> got(bytes_of(field));
      buffer.read(got.data());
      if (field.role == Role::input) {
        if (got != contents_[i]) return {.what = fmt::format("input {} was changed", field.name)};
      } else {
        compare(field, got, contents_[i], expected_[i], variant, result);
      }
      if (result.passed && field.replica_of >= 0) {
        std::vector<std::byte> other(got.size());
        sets_[copy].buffers[static_cast<std::size_t>(field.replica_of)].read(other.data());
        if (got != other)
          return {.what = fmt::format("{} differs from {}", field.name,
                                      fields_[static_cast<std::size_t>(field.replica_of)].name)};
      }
    }
    return result;
  }

  std::uint64_t result_hash(std::size_t copy) override {
    std::uint64_t hash = 14695981039346656037ULL;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!is_result(fields_[i])) continue;
      std::vector<std::byte> got(bytes_of(fields_[i]));
      sets_[copy].buffers[i].read(got.data());
      for (const std::byte b : got)
        hash = (hash ^ static_cast<std::uint64_t>(b)) * 1099511628211ULL;
    }
    return hash;
  }

  bool has_exact_tier() const override { return Adapter<Primitive>::has_exact_tier(problem_); }

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

  static bool is_result(const Field& field) {
    return field.role == Role::output || field.role == Role::in_out;
  }
  static std::size_t bytes_of(const Field& field) {
    return static_cast<std::size_t>(field.count) * field.element;
  }

  static void compare(const Field& field, const std::vector<std::byte>& got_bytes,
                      const std::vector<std::byte>& before_bytes, const Expected& expected,
                      const VariantInfo& variant, Check& result) {
    const auto* got_floats = reinterpret_cast<const float*>(got_bytes.data());
    const auto* before = reinterpret_cast<const float*>(before_bytes.data());
    const auto* got_places = reinterpret_cast<const unsigned char*>(got_bytes.data());
    // The fp32 bound as often as the variant declares, and what it loses by rounding its operands.
    const double factor =
        variant.bound_factor + (expected.unit > 0 ? variant.operand_error / expected.unit : 0);
    // Of a normwise variant: 2^-24 of the largest magnitude, for every element.
    const double largest = variant.normwise && expected.unit > 0
                               ? *std::max_element(expected.bound.begin(), expected.bound.end()) /
                                     expected.unit * 0x1p-24
                               : 0;
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < field.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      double got = field.element == 4 ? double{got_floats[i]} : double(got_places[i]);
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
            fmt::format("{}[{}] is {:.9g}; expected {:.9g}{}", field.name, i, got,
                        expected.value[at], bound > 0 ? fmt::format(" within {:.3g}", bound) : "");
      }
    }
    if (wrong > 1) result.what += fmt::format(" ({} of {} elements wrong)", wrong, field.count);
  }

  Problem problem_;
  std::vector<Field> fields_;
  std::vector<Set> sets_;
  Contents contents_;
  std::vector<Expected> expected_;
};

}  // namespace stepladder
