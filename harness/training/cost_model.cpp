#include "harness/training/cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "harness/io/json_reader.hpp"

namespace stepladder {
namespace {

bool is_finite(double value) { return std::isfinite(value); }
bool is_positive(double value) { return std::isfinite(value) && value > 0; }

// `size` numbers.
std::vector<double> numbers(const JsonValue& list, std::size_t size, const char* expected,
                            bool (*accepts)(double)) {
  const std::vector<JsonValue> elements = list.elements();
  if (elements.size() != size) list.fail(fmt::format("{} numbers", size));
  std::vector<double> values;
  for (const JsonValue& element : elements) values.push_back(element.number(expected, accepts));
  return values;
}

// k of the squared distance r².
double matern(double squared) {
  const double r = std::sqrt(3 * squared);
  return (1 + r) * std::exp(-r);
}

}  // namespace

std::vector<double> shape_features(const ProblemInfo& problem) {
  std::vector<double> sizes;
  const std::string& shape = problem.shape;
  for (std::size_t at = 0; at < shape.size();) {
    if (std::isdigit(static_cast<unsigned char>(shape[at])) == 0) {
      ++at;
      continue;
    }
    std::size_t length = 0;
    sizes.push_back(std::stod(shape.substr(at), &length));
    at += length;
  }
  if (problem.primitive == "matmul" && sizes.size() == 3) {
    const auto [least, most] = std::minmax(sizes[0], sizes[1]);
    sizes.insert(sizes.end(), {least, most});
  } else if (problem.primitive == "convolution" && sizes.size() == 12) {
    const double batch = sizes[0], channels = sizes[1], filters = sizes[4];
    const double kernel_h = sizes[5], kernel_w = sizes[6], stride_h = sizes[7], stride_w = sizes[8];
    const double out_h = std::floor((sizes[2] + 2 * sizes[9] - kernel_h) / stride_h) + 1;
    const double out_w = std::floor((sizes[3] + 2 * sizes[10] - kernel_w) / stride_w) + 1;
    sizes = {batch * out_h * out_w,
             channels,
             filters,
             kernel_h * kernel_w,
             stride_h * stride_w,
             out_w,
             channels * kernel_h * kernel_w};
  }
  sizes.push_back(problem.flops);
  sizes.push_back(problem.bytes_read + problem.bytes_written);
  for (double& size : sizes) size = std::log2(std::max(1.0, size));
  return sizes;
}

CostModel::CostModel(const std::filesystem::path& path, const std::string& cpu_model) {
  const JsonFile file(path);
  JsonObject root(file.root());
  root.get("schema_version").whole_number(1, 1);
  const JsonValue machine = root.get("cpu_model");
  if (machine.text() != cpu_model)
    machine.fail_with(fmt::format(
        "measured on \"{}\", and this is \"{}\"; run `make cost-model` here, with another file",
        machine.text(), cpu_model));
  root.has("source");  // for readers of the file
  for (const JsonValue& each : root.get("families").elements()) {
    JsonObject object(each);
    Family family;
    const std::size_t dimensions = object.get("lengths").elements().size();
    family.lengths = numbers(object.get("lengths"), dimensions, "a positive number", is_positive);
    for (const JsonValue& point : object.get("points").elements())
      family.points.push_back(numbers(point, dimensions, "a number", is_finite));
    JsonObject rungs(object.get("rungs"));
    for (const std::string& variant : rungs.keys()) {
      JsonObject rung(rungs.get(variant));
      family.rungs[variant] = {
          .bias = rung.get("bias").number("a number", is_finite),
          .slopes = numbers(rung.get("slopes"), dimensions, "a number", is_finite),
          .weights = numbers(rung.get("weights"), family.points.size(), "a number", is_finite)};
      rung.finish();
    }
    families_[{object.get("primitive").text(), object.get("direction").text(),
               object.get("layout").text(),
               static_cast<int>(object.get("threads").whole_number(1, 1024))}] = std::move(family);
    object.finish();
  }
  root.finish();
}

std::optional<double> CostModel::seconds(const ProblemInfo& problem, const std::string& variant,
                                         int threads) const {
  const auto found =
      families_.find({problem.primitive, problem.direction, problem.layout, threads});
  if (found == families_.end()) return {};
  const Family& family = found->second;
  const auto rung = family.rungs.find(variant);
  const std::vector<double> x = shape_features(problem);
  if (rung == family.rungs.end() || x.size() != family.lengths.size()) return {};
  double log_seconds = rung->second.bias;
  for (std::size_t d = 0; d < x.size(); ++d) log_seconds += rung->second.slopes[d] * x[d];
  for (std::size_t i = 0; i < family.points.size(); ++i) {
    double squared = 0;
    for (std::size_t d = 0; d < x.size(); ++d)
      squared += std::pow((x[d] - family.points[i][d]) / family.lengths[d], 2);
    log_seconds += rung->second.weights[i] * matern(squared);
  }
  return std::exp2(log_seconds);
}

std::vector<PredictedRung> predicted_rungs(const CostModel& model, Case& problem,
                                           const std::vector<Variant>& variants,
                                           const Resources& resources) {
  std::vector<PredictedRung> known;
  for (const Variant& variant : variants) {
    const std::optional<double> seconds =
        model.seconds(problem.info(), variant.name, resources.threads);
    if (!seconds) continue;
    try {
      problem.plan(variant, resources);
      known.push_back({&variant, *seconds});
    } catch (const Unsupported&) {  // left out
    }
  }
  std::sort(known.begin(), known.end(),
            [](const PredictedRung& a, const PredictedRung& b) { return a.seconds < b.seconds; });
  return known;
}

}  // namespace stepladder
