#include "harness/verify/feedback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "harness/io/hash.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace stepladder {
namespace {

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// The bound of the residuals. If the sum of the C(v) is compressed again, |C(v)| <= |v|, and the
// residual E of the sum satisfies |E'| <= q (|E| + sum_r |g + e|).
class Residual {
 public:
  Residual(const VariantInfo& variant, int ranks)
      : q_(std::sqrt(1 - variant.contraction)),
        again_(variant.compressions > 1),
        // Of input + residual, of the sum over the ranks, and of subtractions.
        rounding_of_call_((ranks + 8) * 0x1p-24) {}

  void call(double inputs) {  // sum_r |g|
    const double sent = of_ranks_ + inputs;
    of_sum_ = again_ ? q_ * (of_sum_ + sent) : 0;
    of_ranks_ = q_ * sent;
    rounding_ += rounding_of_call_ * (sent + of_sum_);
  }
  double bound() const { return of_ranks_ + of_sum_ + rounding_; }
  // Further calls with zeros would lower the bound.
  bool exceeds(double limit) const { return of_ranks_ + of_sum_ > std::max(limit, rounding_); }

 private:
  double q_;
  bool again_;
  double rounding_of_call_;
  double of_ranks_ = 0, of_sum_ = 0, rounding_ = 0;
};

Check compare(const std::vector<double>& sums, const std::vector<double>& expected, int calls,
              double bound) {
  // Without a vector of its own: all ranks of a host do this at the same time.
  double squares = 0, largest = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double error = sums[i] - calls_with_inputs * expected[i];
    squares += error * error;
    if (std::abs(error) <= largest) continue;
    worst = i;
    largest = std::abs(error);
    if (std::isnan(error)) break;
  }
  const double distance = std::sqrt(squares);
  if (distance <= bound) return {.passed = true, .error_ratio = bound > 0 ? distance / bound : 0};
  return {
      .what = fmt::format(
          "the outputs of {} calls with the inputs and {} with zeros sum to a vector at distance "
          "{:.4g} from {} times the result, expected within {:.4g}; element {} is {:.9g}, "
          "expected {:.9g}",
          calls_with_inputs, calls - calls_with_inputs, distance, calls_with_inputs, bound, worst,
          sums[worst], calls_with_inputs * expected[worst])};
}

}  // namespace

Check check_feedback(Case& problem, const VariantInfo& variant, Runner& runner, Check first) {
  const RepeatedReference reference = problem.repeated_reference();
  const auto count = static_cast<double>(reference.expected.size());
  const double all = calls_with_inputs * norm(reference.expected);
  const double element = all / std::sqrt(std::max(count, 1.0));
  std::vector<double> sums(reference.expected.size());
  Residual residual(variant, problem.info().ranks);
  Check check = std::move(first);
  int calls = 0;
  for (;;) {
    problem.add_results(variant, 0, sums);
    residual.call(calls < calls_with_inputs ? reference.summand_norms : 0);
    ++calls;
    const double work = calls * count;
    if (calls >= calls_with_inputs &&
        (!residual.exceeds(element / 8) || (calls >= fewest_calls && work >= usual_work &&
                                            (work >= most_work || !residual.exceeds(all / 2)))))
      break;
    if (calls < calls_with_inputs)
      problem.reset();
    else
      problem.reset_to_zero();
    {
      const auto watched = mpi_session().watch(variant.name);  // each call by itself
      runner.run(0);
    }
    const Check found = problem.check(variant, 0);
    if (check.passed) check = found;
  }
  // Different bits on two ranks in any call remain in the sums.
  const bool same = mpi_session().same_on_all_ranks(hash_of_words(std::as_bytes(std::span(sums))));
  if (check.passed && !same) check = {.what = "the ranks hold different results"};
  return check.passed ? compare(sums, reference.expected, calls, residual.bound()) : check;
}

}  // namespace stepladder
