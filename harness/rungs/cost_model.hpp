// Predicts the seconds that a CPU rung takes for a problem that was never measured. For each
// primitive, group of directions, layout and number of threads, log2(seconds) of each rung is a
// Gaussian process with a linear mean:
//
//   log2 s(x) = bias + sum_d slopes[d] x[d] + sum_i weights[i] k(x, points[i]),
//   k(x, y)   = (1 + sqrt(3) r) exp(-sqrt(3) r),   r² = sum_d ((x[d] - y[d]) / lengths[d])²
//
// with a Matérn kernel of order 3/2 (Rasmussen, Williams: Gaussian Processes for Machine Learning,
// sections 2.7 and 4.2). scripts/cost_model.py fits the model; docs/cost-model.md has its errors.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "harness/problem/case.hpp"

namespace stepladder {

// x, as above: log2 of these sizes, at least 1.
//   matmul       m, n, k, min(m, n), max(m, n), n rounded up to 16 / n, min(n, 16), min(k, 16), m *
//   k,
//                n * k, 4 if A is transposed, else 1; the same of B
//   convolution  of a correlation from a source to a target of h x w pixels; in backward_data from
//   dy to
//                the pixels of dx that use the same taps: batch, batch * h * w, w, pixels in whole
//                4 x 4 tiles / h * w, source channels S, target channels T, min(S, 16), min(T, 16),
//                T rounded up to 16 / T, kernel_h * kernel_w, kernel_w, stride_h * stride_w,
//                stride_w,
//                S * taps of a pixel, elements of the source of an image
//   others       the integers in ProblemInfo::shape
//   all          and the FLOPs, and the bytes
std::vector<double> shape_features(const ProblemInfo& problem);

class CostModel {
 public:
  // Predicts nothing: `best` is measured when a network is made.
  CostModel() = default;
  // Reads the JSON file that `make cost-model` writes. Throws std::runtime_error if it is malformed
  // or from a machine with another processor.
  CostModel(const std::filesystem::path& path, const std::string& cpu_model);

  // Nothing if the variant was not measured in the fit of this direction, layout and number of
  // threads, in shapes of these dimensions, and with sizes up to a factor of two smaller and larger
  // than each of these.
  std::optional<double> seconds(const ProblemInfo& problem, const std::string& variant,
                                int threads) const;

 private:
  struct Rung {
    double bias = 0;
    std::vector<double> slopes;
    std::vector<double> weights;          // [points]; 0 where the rung was not measured
    std::vector<double> lowest, highest;  // of each x[d] of the points with a weight
  };
  struct Family {
    std::vector<double> lengths;
    std::vector<std::vector<double>> points;
    std::map<std::string, Rung> rungs;  // by variant
  };
  std::map<std::tuple<std::string, std::string, std::string, int>, Family>
      families_;  // primitive, direction, layout, threads
};

struct PredictedRung {
  const Variant* variant;
  double seconds;
};

// The order of rungs whose predicted times differ by less than this factor is uncertain
// (docs/cost-model.md has the regret).
inline constexpr double uncertain_factor = 1.25;

// Of the variants that the model knows and that support the problem, whose operands are allocated;
// the fastest first.
std::vector<PredictedRung> predicted_rungs(const CostModel& model, Case& problem,
                                           const std::vector<Variant>& variants,
                                           const Resources& resources);

}  // namespace stepladder
