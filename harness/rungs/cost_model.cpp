#include "harness/rungs/cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

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

double round_up(double value, double step) { return std::ceil(value / step) * step; }

// shape: batch, in_channels, height, width, out_channels, kernel, stride and padding, h before w
std::vector<double> convolution_sizes(const std::vector<double>& shape, bool backward_data) {
  const double batch = shape[0], kernel_h = shape[5], kernel_w = shape[6];
  const double stride_h = shape[7], stride_w = shape[8];
  const double out_h = std::floor((shape[2] + 2 * shape[9] - kernel_h) / stride_h) + 1;
  const double out_w = std::floor((shape[3] + 2 * shape[10] - kernel_w) / stride_w) + 1;
  double source = shape[1], target = shape[4], rows = out_h, columns = out_w;
  double source_plane = shape[2] * shape[3], taps = kernel_h * kernel_w;
  if (backward_data) {
    std::swap(source, target);
    rows = std::ceil(shape[2] / stride_h);
    columns = std::ceil(shape[3] / stride_w);
    source_plane = out_h * out_w;
    taps = std::ceil(kernel_h / stride_h) * std::ceil(kernel_w / stride_w);
  }
  const double rounded_pixels = round_up(rows, 4) * round_up(columns, 4);
  return {batch,
          batch * rows * columns,
          columns,
          rounded_pixels / (rows * columns),
          source,
          target,
          std::min(source, 16.0),
          std::min(target, 16.0),
          round_up(target, 16) / target,
          kernel_h * kernel_w,
          kernel_w,
          stride_h * stride_w,
          stride_w,
          source * taps,
          source * source_plane};
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
    const double m = sizes[0], n = sizes[1], k = sizes[2];
    const std::string form = shape.substr(shape.find(' ') + 1, 2);  // nn, nt, tn or tt
    sizes.insert(sizes.end(), {std::min(m, n), std::max(m, n), round_up(n, 16) / n,
                               std::min(n, 16.0), std::min(k, 16.0), m * k, n * k,
                               form.front() == 't' ? 4.0 : 1.0, form.back() == 't' ? 4.0 : 1.0});
  } else if (problem.primitive == "convolution" && sizes.size() == 12) {
    sizes = convolution_sizes(sizes, problem.direction == "backward_data");
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
      Rung& read = family.rungs[variant];
      read.bias = rung.get("bias").number("a number", is_finite);
      read.slopes = numbers(rung.get("slopes"), dimensions, "a number", is_finite);
      read.weights = numbers(rung.get("weights"), family.points.size(), "a number", is_finite);
      read.lowest.assign(dimensions, std::numeric_limits<double>::infinity());
      read.highest.assign(dimensions, -std::numeric_limits<double>::infinity());
      for (std::size_t i = 0; i < family.points.size(); ++i)
        for (std::size_t d = 0; d < dimensions && read.weights[i] != 0; ++d) {
          read.lowest[d] = std::min(read.lowest[d], family.points[i][d]);
          read.highest[d] = std::max(read.highest[d], family.points[i][d]);
        }
      rung.finish();
    }
    const std::string primitive = object.get("primitive").text();
    const std::string layout = object.get("layout").text();
    const int threads = static_cast<int>(object.get("threads").whole_number(1, 1024));
    for (const JsonValue& direction : object.get("directions").elements())
      families_[{primitive, direction.text(), layout, threads}] = family;
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
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (x[d] < rung->second.lowest[d] - 1 || x[d] > rung->second.highest[d] + 1) return {};
    log_seconds += rung->second.slopes[d] * x[d];
  }
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
