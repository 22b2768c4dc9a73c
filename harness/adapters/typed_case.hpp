// Case for any primitive. The adapter of the primitive, in harness/adapters/<primitive>.cpp, lists
// its operands, fills them and computes the expected results.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>

#include "harness/adapters/make_case.hpp"
#include "harness/adapters/operand_block.hpp"
#include "harness/io/hash.hpp"
#include "harness/problem/guarded_buffer.hpp"
#include "harness/problem/random.hpp"
#include "harness/problem/within_bounds.hpp"

namespace stepladder {

enum class Role { unused, input, output, in_out };

struct OperandInfo {
  std::string name;
  std::int64_t count;  // elements
  Role role;
  std::size_t element = 4;  // bytes: 4 for float, 1 for std::uint8_t
  int device = 0;           // whose memory it is in, unless it is in host memory
  int replica_of = -1;      // the operand that it must equal bit for bit
  // Of an input of other elements than floats: writes one that stands for the value. Without it,
  // the elements are not changed between repetitions, as positions that must lie in a window.
  using Narrow = void (*)(float value, std::byte* to);
  Narrow narrow = nullptr;
  // Of a result of other elements than floats and positions: the number that one stands for.
  using Widen = float (*)(const std::byte* from);
  Widen widen = nullptr;
  std::vector<std::int64_t> extents{};  // of its axes in memory order; empty: one axis

  std::size_t bytes() const { return static_cast<std::size_t>(count) * element; }
  bool is_used() const { return role != Role::unused; }
  // Whether an element of ones is NaN, which no right result is: of floats, bf16 and fp16.
  bool has_nan() const {
    return element == sizeof(float) || (element == sizeof(std::uint16_t) && widen != nullptr);
  }
  std::string element_name(std::int64_t i) const {  // "c[130]", or with extents "c[2, 2]"
    std::string index;
    for (std::size_t axis = extents.size(); axis-- > 0; i /= extents[axis])
      index = fmt::format("{}{}{}", i % extents[axis], index.empty() ? "" : ", ", index);
    return fmt::format("{}[{}]", name, index.empty() ? std::to_string(i) : index);
  }
  bool is_result() const { return role == Role::output || role == Role::in_out; }
  bool can_change() const {
    return role == Role::input && (element == sizeof(float) || narrow != nullptr);
  }
};

inline std::vector<std::int64_t> image_extents(Layout layout, std::int64_t batch,
                                               std::int64_t channels, std::int64_t height,
                                               std::int64_t width) {
  switch (layout) {
    case Layout::nchw:
      return {batch, channels, height, width};
    case Layout::nhwc:
      return {batch, height, width, channels};
    case Layout::chwn:
      return {channels, height, width, batch};
    case Layout::nchw16c:
      break;
  }
  return {batch, stored_channels(layout, channels) / block_channels, height, width, block_channels};
}

// A result is correct if |got - value| <= bound in each element. With `change`, got is the amount
// added to the former content.
struct Expected {
  std::vector<double> value;
  std::vector<float> bound;
  double unit = 0;  // bound / magnitude if the result is a sum of products, else 0
  // Of a sum of k products in the accuracy tier: k · max|a| · max|b|, the most it may be.
  double largest_sum = 0;
  bool change = false;
  double summand_norms = 0;  // all_reduce: see RepeatedReference
  // 0 or more: each rank updates a part of its own choice, of at least so many elements, and leaves
  // or updates the others.
  std::int64_t least_updated = -1;
  bool is_of_part() const { return least_updated >= 0; }
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
  // Computes the results; `random` is as it was before fill.
  { A::expect(problem, tier, random, contents, expected) } -> std::same_as<void>;
  { A::has_exact_tier(problem) } -> std::same_as<bool>;
};

// An adapter of operands that are distributed in problems of several ranks: each rank has a block
// of every operand, which depends on the variant. fill() and expect() are of the whole operands,
// with the same values on all ranks.
template <class A>
concept DistributedAdapter = Adapter<A> &&
    requires(const typename A::Primitive::Problem& problem, const VariantInfo& info) {
  { A::blocks(problem, info) } -> std::same_as<std::vector<OperandBlock>>;  // of this rank
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

  // Blocks are allocated when a variant that needs them is planned.
  void allocate(std::size_t copies, Device* device) override {
    window_sets_.clear();
    window_.reset();
    sets_.clear();
    sets_of_blocks_.clear();
    copies_ = copies;
    if (!is_distributed()) sets_ = make_sets({}, device);
  }

  std::size_t copies() const override { return copies_; }

  void release() override {
    allocate(0, nullptr);
    contents_.clear();
    zeros_.clear();
    expected_.clear();
    expected_of_block_ = Expected();
    for (std::vector<std::byte>* bytes : {&content_of_block_, &downloaded_})
      *bytes = std::vector<std::byte>();
  }

  void fill(Tier tier, std::uint64_t seed) override {
    contents_.resize(operands_.size());
    expected_.assign(operands_.size(), {});
    for (std::size_t i = 0; i < operands_.size(); ++i)
      contents_[i].assign(operands_[i].is_used() ? operands_[i].bytes() : 0, std::byte{0xff});
    Random random(seed, info_.primitive + info_.direction + info_.shape);
    const Random before = random;
    A::fill(problem_, tier, random, contents_);
    A::expect(problem_, tier, before, contents_, expected_);
  }

  void reset() override { reset(contents_, 1); }
  void reset_all() override { reset(contents_, copies_); }
  void reset_to_zero() override {
    if (zeros_.empty())
      for (const std::vector<std::byte>& content : contents_)
        zeros_.emplace_back(content.size(), std::byte{0});
    reset(zeros_, 1);
  }

  void change(const VariantInfo& variant, std::size_t copy, std::uint64_t number,
              int elements) override {
    Set& set = sets_of(variant)[copy];
    rewrite(set, {number, elements, variant.prepacked}, false);
  }

  void touch(const VariantInfo& variant, std::size_t copy, std::uint64_t number,
             int elements) override {
    Set& set = sets_of(variant)[copy];
    const Change kept = std::exchange(set.change, {number - 1, elements, variant.prepacked});
    rewrite(set, {number, elements, variant.prepacked}, true);
    set.change = kept;
  }

  void restore(const VariantInfo& variant, std::size_t copy) override {
    reset(sets_of(variant)[copy], contents_);
  }

  bool is_repeatable(const VariantInfo& variant) const override {
    return variant.contraction == 0 &&
           std::none_of(operands_.begin(), operands_.end(),
                        [](const OperandInfo& operand) { return operand.role == Role::in_out; });
  }

  void poison_samples(const VariantInfo& variant, std::size_t copy) override {
    Set& set = sets_of(variant)[copy];
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (int sample = 0; has_samples(set, i, Role::output) && sample < samples; ++sample)
        set.buffers[i].write_at(sample_at(set, i, sample),
                                std::as_bytes(std::span(&poison, 1)).first(operands_[i].element));
  }

  std::string poisoned_sample(const VariantInfo& variant, std::size_t copy) override {
    const Set& set = sets_of(variant)[copy];
    const std::vector<Sample> read = read_samples(set, Role::output);  // at once
    std::size_t next = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (int sample = 0; has_samples(set, i, Role::output) && sample < samples; ++sample)
        if (read[next++] == poison)
          return held(set, i).element_name(
                     static_cast<std::int64_t>(sample_at(set, i, sample) / operands_[i].element)) +
                 " was not written when the call returned";
    return {};
  }

  std::unique_ptr<Runner> plan(const Variant& variant, const Resources& resources) override {
    auto plan = plan_variant<Primitive>(variant.entry, problem_, resources);
    if (variant.info->window && window_sets_.empty()) allocate_in_window();
    if (std::vector<Set>& sets = sets_of(*variant.info); is_distributed() && sets.empty())
      sets = make_sets(blocks_of(*variant.info), nullptr);
    return std::make_unique<TypedRunner>(sets_of(*variant.info), std::move(plan));
  }

  Check check(const VariantInfo& variant, std::size_t copy) override {
    const Set& set = sets_of(variant)[copy];
    const std::vector<Sample> at_first = results_in_host_memory(set);
    Check result{.passed = true};
    for (std::size_t i = 0; i < operands_.size() && result.passed; ++i) {
      if (!operands_[i].is_used()) continue;
      const OperandInfo operand = held(set, i);
      const GuardedBuffer& buffer = set.buffers[i];
      if (const std::string damage = buffer.guard_damage(); !damage.empty())
        return {.what = fmt::format("{} was {}", operand.name, damage)};
      const std::span<const std::byte> got = buffer.view(downloaded_);
      if (operand.role == Role::input) {
        if (!same_bytes(got, content(set, *inputs_, i)))
          return {.what = fmt::format("input {} was changed", operand.name)};
      } else if (variant.contraction == 0) {
        compare(operand, got, content(set, contents_, i), expected(set, i), variant, result);
      }
      if (result.passed && operand.replica_of >= 0) {
        std::vector<std::byte> downloaded;
        const GuardedBuffer& other = set.buffers[static_cast<std::size_t>(operand.replica_of)];
        if (!same_bytes(got, other.view(downloaded)))
          return {.what =
                      fmt::format("{} differs from {}", operand.name,
                                  operands_[static_cast<std::size_t>(operand.replica_of)].name)};
      }
    }
    const std::vector<Sample> now = results_in_host_memory(set);
    if (result.passed && at_first != now)
      return {.what = "results changed after the call had returned"};
    return result;
  }

  double relative_error(const VariantInfo& variant, std::size_t copy) override {
    double largest = 0;
    if (variant.encoded_share == 1.0) return largest;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].is_result()) continue;
      const std::vector<double>& expected = expected_[i].value;
      const auto* got = reinterpret_cast<const float*>(
          sets_of(variant)[copy].buffers[i].view(downloaded_).data());
      double error = 0, norm = 0;
      for (std::size_t j = 0; j < expected.size(); ++j) {
        error += (double{got[j]} - expected[j]) * (double{got[j]} - expected[j]);
        norm += expected[j] * expected[j];
      }
      if (norm > 0) largest = std::max(largest, std::sqrt(error / norm));
    }
    return largest;
  }

  std::uint64_t result_hash(const VariantInfo& variant, std::size_t copy) override {
    std::uint64_t hash = fnv1a_basis;
    if (is_distributed()) return hash;  // each rank has other results
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].is_result() || expected_[i].is_of_part()) continue;
      hash = hash_of_words(sets_of(variant)[copy].buffers[i].view(downloaded_), hash);
    }
    return hash;
  }

  bool has_exact_tier() const override { return A::has_exact_tier(problem_); }

  RepeatedReference repeated_reference() const override {
    RepeatedReference all;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].replica_of >= 0) continue;
      const std::vector<double>& value = expected_[i].value;
      all.expected.insert(all.expected.end(), value.begin(), value.end());
      all.summand_norms += expected_[i].summand_norms;
    }
    return all;
  }

  void add_results(const VariantInfo& variant, std::size_t copy,
                   std::vector<double>& sums) override {
    std::size_t at = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].replica_of >= 0 || expected_[i].value.empty()) continue;
      const auto* got = reinterpret_cast<const float*>(
          sets_of(variant)[copy].buffers[i].view(downloaded_).data());
      for (std::size_t j = 0; j < expected_[i].value.size(); ++j) sums[at++] += double{got[j]};
    }
  }

 private:
  // See change().
  struct Change {
    std::uint64_t number = 0;
    int elements = 0;
    bool of_first_alone = false;
  };
  struct Set {
    std::vector<GuardedBuffer> buffers;
    Operands operands;
    std::vector<OperandBlock> blocks{};  // of each operand; empty if they are whole
    Change change{};
  };

  // An element's bits, with the others as in `poison`.
  using Sample = std::uint32_t;
  static constexpr Sample poison = ~Sample{0};
  static constexpr int samples = 16;  // of each result that has NaN

  std::int64_t count_of(const Set& set, std::size_t i) const {
    return set.blocks.empty() ? operands_[i].count : set.blocks[i].count();
  }
  // The element of the whole operand that the set has at `at`.
  static std::size_t in_whole(const Set& set, std::size_t i, std::int64_t at) {
    if (set.blocks.empty()) return static_cast<std::size_t>(at);
    const OperandBlock& block = set.blocks[i];
    return static_cast<std::size_t>(block.first + at / block.columns * block.stride +
                                    at % block.columns);
  }

  // Calls visit(operand, element, value) for each element that the change of the set changes. The
  // values fit 16 bits, and are so large that results without them are wrong.
  template <class Visit>
  void for_changed(const Set& set, Visit visit) const {
    const auto& [number, elements, of_first_alone] = set.change;
    if (number == 0) return;
    const auto is_changed = [&](std::size_t i) {
      return operands_[i].can_change() && count_of(set, i) > 0;
    };
    std::size_t inputs = 0, input = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i) inputs += is_changed(i);
    if (of_first_alone) inputs = std::min(inputs, std::size_t{1});
    for (std::size_t i = 0; i < operands_.size() && input < inputs; ++i) {
      if (!is_changed(i) || (input++ != number % inputs && elements == 1)) continue;
      const std::int64_t count = count_of(set, i);
      constexpr std::int64_t each = 64;
      const std::int64_t changed = std::clamp<std::int64_t>(count / each, 1, elements);
      for (std::int64_t j = 0; j < changed; ++j) {
        const std::uint64_t numbers[]{number, i, static_cast<std::uint64_t>(j)};
        const std::uint64_t hash = fnv1a(std::as_bytes(std::span(numbers)), fnv1a_basis);
        const auto size = static_cast<float>(1024 + (hash >> 40U) % 1024);
        visit(i, static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(count)),
              (hash >> 63U) != 0 ? size : -size);
      }
    }
  }

  // Undoes the change that the set has and makes another. keeps: the same accesses and
  // computations, but every element keeps its value.
  void rewrite(Set& set, const Change& change, bool keeps) {
    for_changed(set, [&](std::size_t i, std::int64_t at, float) {
      rewrite_element(set, i, at, keeps, [&](std::span<std::byte> element) {
        std::memcpy(element.data(), &contents_[i][in_whole(set, i, at) * element.size()],
                    element.size());
      });
    });
    set.change = change;
    for_changed(set, [&](std::size_t i, std::int64_t at, float value) {
      rewrite_element(set, i, at, keeps, [&](std::span<std::byte> element) {
        if (operands_[i].narrow != nullptr)
          operands_[i].narrow(value, element.data());
        else
          std::memcpy(element.data(), &value, sizeof(value));
      });
    });
  }

  // edit: sets the bytes of the element. On the host it is read in any case, so that its cache line
  // arrives in the same way.
  template <class Edit>
  void rewrite_element(Set& set, std::size_t i, std::int64_t at, bool keeps, Edit edit) const {
    std::array<std::byte, sizeof(double)> kept{}, edited{};
    const std::size_t bytes = operands_[i].element;
    const std::size_t first = static_cast<std::size_t>(at) * bytes;
    GuardedBuffer& buffer = set.buffers[i];
    if (keeps || !buffer.is_on_device()) buffer.read_at(first, std::span(kept).first(bytes));
    edit(std::span(edited).first(bytes));
    buffer.write_at(first, std::span(keeps ? kept : edited).first(bytes));
  }

  bool has_samples(const Set& set, std::size_t i, Role role) const {
    return operands_[i].role == role && operands_[i].has_nan() && count_of(set, i) > 0;
  }
  // Byte; of the first element, the last one and others between.
  std::size_t sample_at(const Set& set, std::size_t i, int sample) const {
    return static_cast<std::size_t>((count_of(set, i) - 1) * sample / (samples - 1)) *
           operands_[i].element;
  }
  std::vector<Sample> read_samples(const Set& set, Role role) const {
    std::vector<Sample> read;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (int sample = 0; has_samples(set, i, role) && sample < samples; ++sample)
        set.buffers[i].read_at(sample_at(set, i, sample),
                               std::as_writable_bytes(std::span(&read.emplace_back(poison), 1))
                                   .first(operands_[i].element));
    return read;
  }
  // Samples of them.
  std::vector<Sample> results_in_host_memory(const Set& set) const {
    std::vector<Sample> read;
    if (std::any_of(set.buffers.begin(), set.buffers.end(),
                    [](const GuardedBuffer& buffer) { return buffer.is_on_device(); }))
      return read;
    read = read_samples(set, Role::output);
    const std::vector<Sample> more = read_samples(set, Role::in_out);
    read.insert(read.end(), more.begin(), more.end());
    return read;
  }

  bool is_distributed() const { return DistributedAdapter<A> && info_.ranks > 1; }

  // Empty if the operands are whole.
  std::vector<OperandBlock> blocks_of(const VariantInfo& variant) const {
    if constexpr (DistributedAdapter<A>)
      if (is_distributed()) return A::blocks(problem_, variant);
    return {};
  }

  std::vector<Set> make_sets(const std::vector<OperandBlock>& blocks, Device* device) const {
    std::vector<Set> sets;
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      Set set;
      set.blocks = blocks;
      std::vector<void*> pointers;
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        const OperandInfo operand = held(set, i);
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
      sets.push_back(std::move(set));
    }
    return sets;
  }

  // What the set has of operand i: its size, its content and what is expected in it. The references
  // are valid until the next call.
  OperandInfo held(const Set& set, std::size_t i) const {
    OperandInfo operand = operands_[i];
    if (!set.blocks.empty()) {
      operand.count = set.blocks[i].count();
      operand.extents.clear();
    }
    return operand;
  }
  const std::vector<std::byte>& content(const Set& set, const Contents& whole, std::size_t i) {
    if (set.blocks.empty()) return whole[i];
    copy_block(whole[i], set.blocks[i], operands_[i].element, content_of_block_);
    return content_of_block_;
  }
  const Expected& expected(const Set& set, std::size_t i) {
    if (set.blocks.empty()) return expected_[i];
    copy_block(expected_[i].value, set.blocks[i], 1, expected_of_block_.value);
    copy_block(expected_[i].bound, set.blocks[i], 1, expected_of_block_.bound);
    expected_of_block_.unit = expected_[i].unit;
    expected_of_block_.change = expected_[i].change;
    return expected_of_block_;
  }

  class TypedRunner final : public Runner {
   public:
    TypedRunner(std::vector<Set>& sets, std::unique_ptr<PlanOf<Primitive>> plan)
        : sets_(sets), plan_(std::move(plan)) {}
    void prepare() override { plan_->prepare(sets_.front().operands); }
    void run(std::size_t copy) override { plan_->run(sets_[copy].operands); }
    std::string remark() const override { return plan_->remark(); }

   private:
    std::vector<Set>& sets_;
    std::unique_ptr<PlanOf<Primitive>> plan_;
  };

  // == of vectors of std::byte compares one byte at a time.
  static bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }

  // `inputs`: contents_ or zeros_.
  void reset(const Contents& inputs, std::size_t copies) {
    inputs_ = &inputs;
    std::vector<std::vector<Set>*> all{&sets_, &window_sets_};
    for (auto& [blocks, sets] : sets_of_blocks_) all.push_back(&sets);
    for (std::vector<Set>* sets : all)
      for (Set& set : std::span(*sets).first(std::min(copies, sets->size()))) reset(set, inputs);
  }
  void reset(Set& set, const Contents& inputs) {
    set.change = {};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].role == Role::input || operands_[i].role == Role::in_out)
        set.buffers[i].write(content(set, inputs, i).data());
      else if (operands_[i].role == Role::output)
        set.buffers[i].poison();
    }
  }

  std::vector<Set>& sets_of(const VariantInfo& variant) {
    if (is_distributed()) return sets_of_blocks_[blocks_of(variant)];
    return variant.window ? window_sets_ : sets_;
  }

  // The same sets once more, in memory that the ranks of a node share. Collective.
  void allocate_in_window() {
    if constexpr (requires { A::window(problem_, std::size_t{}); }) {
      std::size_t bytes = 0;
      for (const OperandInfo& operand : operands_)
        bytes += GuardedBuffer::memory_for(operand.bytes());
      const auto window = A::window(problem_, bytes * sets_.size());
      window_ = window;
      std::byte* at = window->segment();
      for (std::size_t copy = 0; copy < sets_.size(); ++copy) {
        Set set;
        std::vector<void*> pointers;
        for (const OperandInfo& operand : operands_) {
          const std::size_t whole = GuardedBuffer::memory_for(operand.bytes());
          set.buffers.emplace_back(operand.bytes(), std::span(at, whole));
          pointers.push_back(set.buffers.back().data());
          at += whole;
        }
        set.operands = A::bind(problem_, pointers);
        set.operands.window = window.get();
        window_sets_.push_back(std::move(set));
      }
    }
  }

  static void compare(const OperandInfo& operand, std::span<const std::byte> got_bytes,
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
    const double more = variant.quantization_error * expected.largest_sum;
    const std::span value(expected.value);
    if (operand.element == sizeof(float) && !expected.is_of_part() &&
        all_within({.got = got_floats,
                    .before = expected.change ? before : nullptr,
                    .value = value.first(static_cast<std::size_t>(operand.count)),
                    .bound = variant.normwise ? nullptr : expected.bound.data(),
                    .factor = factor,
                    .more = more + (variant.normwise ? largest * factor : 0)},
                   result.error_ratio))
      return;
    std::int64_t wrong = 0, kept = 0;
    for (std::int64_t i = 0; i < operand.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      double got = operand.element == 4 ? double{got_floats[i]}
                   : operand.widen != nullptr
                       ? double{operand.widen(&got_bytes[at * operand.element])}
                       : double(got_positions[i]);
      if (expected.change) got -= double{before[i]};
      const double bound =
          (variant.normwise ? largest : double{expected.bound[at]}) * factor + more;
      const double error = std::abs(got - expected.value[at]);
      if (error <= bound) {  // NaN fails here
        // An element that was left as it was may be right by chance.
        const bool may_be_kept = expected.is_of_part() && got_floats[i] == before[i];
        if (error > result.error_ratio * bound && bound > 0 && !may_be_kept)  // seldom: / is slow
          result.error_ratio = error / bound;
        continue;
      }
      if (expected.is_of_part() && got_floats[i] == before[i]) {
        ++kept;
        continue;
      }
      if (wrong++ == 0) {
        result.passed = false;
        result.what =
            fmt::format("{} is {:.9g}; expected {:.9g}{}", operand.element_name(i), got,
                        expected.value[at], bound > 0 ? fmt::format(" within {:.3g}", bound) : "");
      }
    }
    if (wrong == 0 && expected.is_of_part() && operand.count - kept < expected.least_updated) {
      result.passed = false;
      result.what =
          fmt::format("{} was updated in {} of {} elements; expected {} or more", operand.name,
                      operand.count - kept, operand.count, expected.least_updated);
    }
    if (wrong > 1) result.what += fmt::format(" ({} of {} elements wrong)", wrong, operand.count);
  }

  Problem problem_;
  std::vector<OperandInfo> operands_;
  std::size_t copies_ = 0;
  std::vector<Set> sets_;  // empty if the operands are distributed
  std::map<std::vector<OperandBlock>, std::vector<Set>> sets_of_blocks_;  // made by plan()
  std::vector<std::byte> content_of_block_;
  std::vector<std::byte> downloaded_;  // of GuardedBuffer::view
  Expected expected_of_block_;
  std::shared_ptr<const void> window_;  // the memory of window_sets_
  std::vector<Set> window_sets_;        // for variants with .window; empty until one is planned
  Contents contents_;
  Contents zeros_;                       // as long as contents_, made when it is first needed
  const Contents* inputs_ = &contents_;  // since the last reset
  std::vector<Expected> expected_;
};

}  // namespace stepladder
