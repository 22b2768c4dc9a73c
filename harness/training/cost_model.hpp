// Predicts the seconds that a CPU rung takes for a problem that was never measured. For each primitive,
// direction, layout and number of threads, log2(seconds) of each rung is a Gaussian process with a linear mean:
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
//   matmul       m, n, k, min(m, n), max(m, n)
//   convolution  batch * out_h * out_w, in_channels, out_channels, kernel_h * kernel_w,
//                stride_h * stride_w, out_w, in_channels * kernel_h * kernel_w
//   others       the integers in ProblemInfo::shape
//   all          and the FLOPs, and the bytes
std::vector<double> shape_features(const ProblemInfo& problem);

class CostModel {
 public:
  // Predicts nothing: `best` is measured when a network is made.
  CostModel() = default;
  // Reads the JSON file that `make cost-model` writes. Throws std::runtime_error if it is malformed or
  // from a machine with another processor.
  CostModel(const std::filesystem::path& file, const std::string& cpu_model);

  // Nothing if the variant was not measured for this direction and number of threads, or in shapes of
  // other dimensions.
  std::optional<double> seconds(const ProblemInfo& problem, const std::string& variant,
                                int threads) const;

 private:
  struct Rung {
    double bias = 0;
    std::vector<double> slopes, weights;  // weights: one for each point
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

// Of the variants that the model knows and that support the problem, whose operands are allocated; the
// fastest first.
std::vector<PredictedRung> predicted_rungs(const CostModel& model, Case& problem,
                                           const std::vector<Variant>& variants,
                                           const Resources& resources);

}  // namespace stepladder
