#include "tests/mpi/all_reduce_check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// Links of 1 us and 10 GB/s, for the variant that chooses by the cost model.
const Links& links() {
  static const CostCurve line = CostCurve::line(1e-6, 1e-10);
  static const Links links{{line, line, line}, {line, line, line}, line, line, line, line, 1e-10};
  return links;
}

constexpr std::size_t guard = 61;  // floats on each side; odd: the array is not aligned
constexpr std::uint32_t guard_bits = 0x7fc5a5a5;  // a NaN that arithmetic does not produce

// An array between two guard zones, filled with NaN, in memory of its own or of the caller.
class Guarded {
 public:
  static std::size_t floats(std::size_t count) { return count + 2 * guard; }
  explicit Guarded(std::size_t count) : count_(count), own_(floats(count)), storage_(own_) {
    fill();
  }
  Guarded(std::size_t count, std::span<float> memory) : count_(count), storage_(memory) { fill(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  float* data() { return storage_.data() + guard; }
  void fill_with_nan() { std::fill_n(data(), count_, std::numeric_limits<float>::quiet_NaN()); }
  bool guards_intact() const {
    for (std::size_t i = 0; i < guard; ++i)
      if (std::bit_cast<std::uint32_t>(storage_[i]) != guard_bits ||
          std::bit_cast<std::uint32_t>(storage_[guard + count_ + i]) != guard_bits)
        return false;
    return true;
  }

 private:
  void fill() {
    std::ranges::fill(storage_, std::bit_cast<float>(guard_bits));
    fill_with_nan();
  }

  std::size_t count_;
  std::vector<float> own_;
  std::span<float> storage_;  // [guard + count + guard]
};

std::uint64_t mix(std::uint64_t x) {  // the finalizer of SplitMix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// value(rank, i) is the input of any rank.
template <class Value>
Sample sample_of(const Problem& problem, int rank, bool exact, Value value) {
  const auto count = static_cast<std::size_t>(problem.count);
  Sample sample{std::vector<float>(count), std::vector<double>(count), std::vector<double>(count),
                std::vector<double>(count)};
  const double u = std::ldexp(1.0, -24);
  const double k = problem.ranks + 1;
  const double gamma = k * u / (1 - k * u);
  const bool mean = problem.operation == Operation::mean;
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    double magnitude = 0;
    for (int r = 0; r < problem.ranks; ++r) {
      const float x = value(r, i);
      sum += x;
      magnitude += std::abs(x);
      if (r == rank) sample.input[i] = x;
    }
    const double result = mean ? sum / problem.ranks : sum;
    sample.expected[i] = exact ? static_cast<float>(result) : result;
    sample.magnitude[i] = mean ? magnitude / problem.ranks : magnitude;
    sample.bound[i] = exact ? 0 : gamma * sample.magnitude[i];
  }
  return sample;
}

std::uint64_t random_bits(std::uint64_t seed, int rank, std::size_t i) {
  return mix(mix(seed * 1000 + static_cast<std::uint64_t>(rank)) + i * 0x9e3779b97f4a7c15u);
}

std::uint64_t hash(const float* values, std::size_t count) {
  std::uint64_t h = 0;
  for (std::size_t i = 0; i < count; ++i) h = mix(h + std::bit_cast<std::uint32_t>(values[i]) + 1);
  return h;
}

// NaN is wrong.
std::string first_wrong(const float* output, const Sample& sample, double operand_error) {
  for (std::size_t i = 0; i < sample.expected.size(); ++i) {
    const double bound = sample.bound[i] + operand_error * sample.magnitude[i];
    if (!(std::abs(output[i] - sample.expected[i]) <= bound))
      return "element " + std::to_string(i) + " is " + std::to_string(output[i]) + ", expected " +
             std::to_string(sample.expected[i]) + " within " + std::to_string(bound);
  }
  return "";
}

}  // namespace

Sample integer_sample(const Problem& problem, int rank, std::uint64_t seed) {
  return sample_of(problem, rank, true, [seed](int r, std::size_t i) {
    return static_cast<float>(random_bits(seed, r, i) % 17) - 8.0f;
  });
}

Sample uniform_sample(const Problem& problem, int rank, std::uint64_t seed) {
  return sample_of(problem, rank, false, [seed](int r, std::size_t i) {
    return static_cast<float>(static_cast<double>(random_bits(seed, r, i) >> 11) * 0x1p-52 - 1.0);
  });
}

std::string fault_of(stepladder::Factory<AllReduce> factory, const Problem& problem, bool in_place,
                     const std::vector<Sample>& samples, const MpiSession& session,
                     double operand_error, bool in_window) {
  const Resources resources{.communicator = session.communicator(), .links = &links()};
  const std::unique_ptr<Plan> plan = factory(problem, resources);
  const auto count = static_cast<std::size_t>(problem.count);
  const std::size_t floats = Guarded::floats(count);
  std::unique_ptr<Window> window;
  if (in_window)
    window = std::make_unique<Window>(communicator_of(resources), 2 * floats * sizeof(float));
  const auto array = [&](std::size_t index) {
    if (window == nullptr) return Guarded(count);
    float* const memory = reinterpret_cast<float*>(window->segment()) + index * floats;
    return Guarded(count, {memory, floats});
  };
  Guarded input = array(0);
  Guarded output = array(1);
  float* const from = in_place ? output.data() : input.data();

  std::string fault;
  for (std::size_t run = 0; run < samples.size(); ++run) {
    const Sample& sample = samples[run];
    output.fill_with_nan();
    std::ranges::copy(sample.input, from);
    // No barrier: the plan waits until the inputs of all ranks are complete.
    plan->run({from, output.data(), window.get()});

    std::string found = first_wrong(output.data(), sample, operand_error);
    if (!input.guards_intact() || !output.guards_intact()) found = "it wrote outside its arrays";
    if (!in_place && !std::equal(sample.input.begin(), sample.input.end(), from))
      found = "it changed its input";
    if (!session.same_on_all_ranks(hash(output.data(), count)) && found.empty())
      found = "the ranks hold different bits";
    if (fault.empty() && !found.empty()) fault = "run " + std::to_string(run) + ": " + found;
  }
  const bool anywhere = session.max(fault.empty() ? 0 : 1) > 0;
  return anywhere && fault.empty() ? "another rank found a fault" : fault;
}

std::vector<Sample> recorded(stepladder::Factory<AllReduce> factory, const Problem& problem,
                             std::vector<Sample> samples, const MpiSession& session) {
  const Resources resources{.communicator = session.communicator(), .links = &links()};
  const std::unique_ptr<Plan> plan = factory(problem, resources);
  std::vector<float> output(static_cast<std::size_t>(problem.count));
  for (Sample& sample : samples) {
    plan->run({sample.input.data(), output.data()});
    sample.expected.assign(output.begin(), output.end());
    std::ranges::fill(sample.bound, 0.0);
  }
  return samples;
}

}  // namespace stepladder::all_reduce
