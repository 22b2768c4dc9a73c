#include "harness/network/load.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/io/float_range.hpp"
#include "harness/io/json_reader.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/printable.hpp"

namespace stepladder::network {
namespace {

namespace fs = std::filesystem;

double number(const JsonValue& value, const FloatRange& range) {
  return value.number(range.expected, range.accepts);
}
double positive(const JsonValue& value) { return number(value, positive_float); }
double not_negative(const JsonValue& value) { return number(value, non_negative_float); }
double fraction(const JsonValue& value) { return number(value, float_below_1); }

// Letters, digits, '_', '-' and '.', at least one: safe in file names and CSV.
std::string identifier(const JsonValue& value) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  };
  std::string name = value.text();
  if (name.empty() || !std::all_of(name.begin(), name.end(), allowed))
    value.fail("a name of letters, digits, '_', '-' and '.'");
  return name;
}

constexpr std::int64_t largest_size = 1'000'000;
constexpr std::int64_t most_layers = 10'000;

std::int64_t size_of(JsonObject& object, const std::string& key) {
  return object.get(key).whole_number(1, largest_size);
}

struct Size {
  std::int64_t h, w;
};

// `key` for both directions, or key_h and key_w; `otherwise` if all are missing.
Size read_size(JsonObject& object, const std::string& key, std::int64_t least,
               std::optional<Size> otherwise = std::nullopt) {
  const std::string key_h = key + "_h";
  const std::string key_w = key + "_w";
  const auto read = [&](const std::string& name) {
    return object.get(name).whole_number(least, largest_size);
  };
  const bool square = object.has(key);
  const bool has_h = object.has(key_h), has_w = object.has(key_w);
  const bool apart = has_h || has_w;
  if (square && apart) {
    object.fail_with(
        fmt::format("expected either '{}' or '{}' and '{}', found both", key, key_h, key_w));
  }
  if (apart) return {read(key_h), read(key_w)};
  if (square) return {read(key), read(key)};
  if (otherwise) return *otherwise;
  object.fail_with(
      fmt::format("expected a key '{}', or '{}' and '{}', found none", key, key_h, key_w));
}

std::optional<JsonValue> optional_key(JsonObject& object, const std::string& key) {
  if (!object.has(key)) return std::nullopt;
  return object.get(key);
}

// The value of `choices` under the string `value`.
template <class Choice>
const Choice& choose(const JsonValue& value, const std::map<std::string, Choice>& choices) {
  const auto found = choices.find(value.text());
  if (found == choices.end()) {
    std::vector<std::string> names;
    names.reserve(choices.size());
    for (const auto& choice : choices) names.push_back(choice.first);
    value.fail(fmt::format("one of {}", fmt::join(names, ", ")));
  }
  return found->second;
}

Layer read_fully_connected(JsonObject& object) {
  return FullyConnected{size_of(object, "outputs")};
}

Layer read_convolution(JsonObject& object) {
  const Size kernel = read_size(object, "kernel", 1);
  const Size stride = read_size(object, "stride", 1, Size{1, 1});
  const Size pad = read_size(object, "pad", 0, Size{0, 0});
  return Convolution{.filters = size_of(object, "filters"),
                     .kernel_h = kernel.h,
                     .kernel_w = kernel.w,
                     .stride_h = stride.h,
                     .stride_w = stride.w,
                     .pad_h = pad.h,
                     .pad_w = pad.w,
                     .groups = object.has("groups") ? size_of(object, "groups") : 1};
}

// Window, stride and padding of max_pool and average_pool.
template <class Pool>
Pool read_pool(JsonObject& object) {
  const Size window = read_size(object, "window", 1);
  const Size stride = read_size(object, "stride", 1, window);
  const Size pad = read_size(object, "pad", 0, Size{0, 0});
  return {.window_h = window.h,
          .window_w = window.w,
          .stride_h = stride.h,
          .stride_w = stride.w,
          .pad_h = pad.h,
          .pad_w = pad.w};
}

Layer read_max_pool(JsonObject& object) { return read_pool<MaxPool>(object); }

Layer read_average_pool(JsonObject& object) {
  using average_pool::Count;
  static const std::map<std::string, Count> counts{{"include_padding", Count::include_padding},
                                                   {"exclude_padding", Count::exclude_padding}};
  auto layer = read_pool<AveragePool>(object);
  if (const auto count = optional_key(object, "count")) layer.count = choose(*count, counts);
  return layer;
}

Layer read_dropout(JsonObject& object) {
  Dropout layer;
  if (const auto rate = optional_key(object, "rate")) layer.rate = fraction(*rate);
  return layer;
}

Layer read_local_response_normalization(JsonObject& object) {
  LocalResponseNormalization layer;
  if (const auto size = optional_key(object, "size")) {
    layer.size = size->whole_number(1, largest_size);
    if (layer.size % 2 == 0) size->fail("an odd number of channels");
  }
  if (const auto beta = optional_key(object, "beta")) layer.beta = not_negative(*beta);
  if (const auto alpha = optional_key(object, "alpha")) {
    layer.alpha = not_negative(*alpha);
    if (!non_negative_float.accepts(2 * layer.alpha * layer.beta))
      alpha->fail(fmt::format("an alpha whose 2 alpha beta is at most 3.4e+38, with beta = {:g}",
                              layer.beta));
  }
  if (const auto k = optional_key(object, "k")) layer.k = positive(*k);
  return layer;
}

template <class Plain>
Layer read_plain(JsonObject&) {
  return Plain{};
}

using ReadLayer = Layer (*)(JsonObject&);

const std::map<std::string, ReadLayer>& layer_readers() {
  static const std::map<std::string, ReadLayer> readers{
      {FullyConnected::type, read_fully_connected},
      {Convolution::type, read_convolution},
      {MaxPool::type, read_max_pool},
      {AveragePool::type, read_average_pool},
      {Relu::type, read_plain<Relu>},
      {Sigmoid::type, read_plain<Sigmoid>},
      {Tanh::type, read_plain<Tanh>},
      {Dropout::type, read_dropout},
      {LocalResponseNormalization::type, read_local_response_normalization},
      {SoftmaxCrossEntropy::type, read_plain<SoftmaxCrossEntropy>},
  };
  return readers;
}

LayerDescription read_layer(const JsonValue& value) {
  JsonObject object(value);
  const ReadLayer read = choose(object.get("type"), layer_readers());
  LayerDescription description;
  if (const auto name = optional_key(object, "name")) description.name = identifier(*name);
  if (const auto flag = optional_key(object, "optional")) description.optional = flag->boolean();
  description.layer = read(object);
  object.finish();
  return description;
}

// Gives unnamed layers unused names: relu1, relu2 and so on.
void name_layers(std::vector<LayerDescription>& layers) {
  std::set<std::string> taken;
  for (const LayerDescription& layer : layers) taken.insert(layer.name);
  std::map<std::string, int> numbers;
  for (LayerDescription& layer : layers) {
    const std::string short_name =
        std::visit([](const auto& one) { return one.short_name; }, layer.layer);
    while (layer.name.empty()) {
      const std::string name = fmt::format("{}{}", short_name, ++numbers[short_name]);
      if (taken.insert(name).second) layer.name = name;
    }
  }
}

std::vector<LayerDescription> read_layers(const JsonValue& value) {
  const std::vector<JsonValue> elements = value.elements();
  if (elements.empty() || elements.size() > most_layers) {
    value.fail_with(fmt::format("expected 1 to {} layers, found {}", most_layers, elements.size()));
  }
  std::vector<LayerDescription> layers;
  std::set<std::string> names;
  for (const JsonValue& element : elements) {
    layers.push_back(read_layer(element));
    const std::string& name = layers.back().name;
    if (!name.empty() && !names.insert(name).second) {
      element.fail_with(
          fmt::format("expected a name that no other layer has, found '{}' again", name));
    }
  }
  name_layers(layers);
  return layers;
}

OptimizerDescription read_optimizer(const JsonValue& value) {
  using sgd_update::Optimizer;
  using DecayedWeights = OptimizerDescription::DecayedWeights;
  static const std::map<std::string, DecayedWeights> decayed_weights{
      {"all", DecayedWeights::all},
      {"fully_connected", DecayedWeights::fully_connected},
      {"convolution", DecayedWeights::convolution}};

  JsonObject object(value);
  OptimizerDescription optimizer = default_optimizer(choose(object.get("type"), optimizer_types()));
  const auto is = [&](Optimizer type) { return optimizer.type == type; };

  if (optimizer.learning_rate == 0 || object.has("learning_rate"))
    optimizer.learning_rate = positive(object.get("learning_rate"));
  const bool decays = object.has("decay"), has_interval = object.has("decay_every_samples");
  if (decays || has_interval) {
    optimizer.decay = object.get("decay").number("a factor above 0, at most 1",
                                                 [](double x) { return x > 0 && x <= 1; });
    optimizer.decay_every_samples =
        object.get("decay_every_samples").whole_number(1, std::int64_t{1} << 53);
  }
  if (const auto decay = optional_key(object, "weight_decay")) {
    optimizer.weight_decay = not_negative(*decay);
  }
  if (const auto on = optional_key(object, "weight_decay_on")) {
    optimizer.weight_decay_on = choose(*on, decayed_weights);
  }
  if (is(Optimizer::momentum)) {
    if (const auto momentum = optional_key(object, "momentum")) {
      optimizer.momentum = fraction(*momentum);
    }
  }
  if (is(Optimizer::adadelta) || is(Optimizer::rmsprop)) {
    if (const auto rho = optional_key(object, "rho")) optimizer.rho = fraction(*rho);
  }
  if (is(Optimizer::adam)) {
    if (const auto beta1 = optional_key(object, "beta1")) optimizer.beta1 = fraction(*beta1);
    if (const auto beta2 = optional_key(object, "beta2")) optimizer.beta2 = fraction(*beta2);
  }
  if (!is(Optimizer::sgd) && !is(Optimizer::momentum)) {
    if (const auto epsilon = optional_key(object, "epsilon")) {
      optimizer.epsilon = positive(*epsilon);
      // Adam's first step multiplies it by sqrt(1 - beta2).
      const double beta2 = is(Optimizer::adam) ? static_cast<float>(optimizer.beta2) : 0;
      if (!positive_float.accepts(std::sqrt(1 - beta2) * optimizer.epsilon))
        epsilon->fail(
            fmt::format("an epsilon whose product with sqrt(1 - beta2), beta2 = {:g}, is "
                        "above 0 in single precision",
                        beta2));
    }
  }
  object.finish();
  return optimizer;
}

Shape read_shape(const JsonValue& value) {
  JsonObject object(value);
  const Shape shape{size_of(object, "channels"), size_of(object, "height"),
                    size_of(object, "width")};
  object.finish();
  return shape;
}

NetworkDescription read_network(const JsonValue& value, const std::string& name) {
  JsonObject object(value);
  NetworkDescription network;
  network.name = name;
  if (const auto source = optional_key(object, "source")) network.source = source->text();
  network.input = read_shape(object.get("input"));
  network.classes = size_of(object, "classes");
  network.batch = size_of(object, "batch");
  network.layers = read_layers(object.get("layers"));
  network.optimizer = read_optimizer(object.get("optimizer"));
  if (const auto weights = optional_key(object, "initial_weights")) {
    JsonObject initial(*weights);
    network.normal_std = positive(initial.get("normal_std"));
    initial.finish();
  }
  object.finish();
  try {
    infer_shapes(network);
  } catch (const ShapeError& error) {
    object.get("layers").elements()[error.layer()].fail_with(error.what());
  }
  return network;
}

// One network, recognised by any of its keys, or an object with one network under its name.
NetworkDescription read_file(const fs::path& path) {
  const JsonFile file(path);
  JsonObject object(file.root());
  static constexpr std::array network_keys{"input",     "classes", "batch",          "layers",
                                           "optimizer", "source",  "initial_weights"};
  if (std::any_of(network_keys.begin(), network_keys.end(),
                  [&](const char* key) { return object.has(key); })) {
    return read_network(file.root(), as_utf8(path.stem().string()));
  }
  const std::vector<std::string> names = object.keys();
  if (names.size() != 1) {
    file.root().fail_with(fmt::format("expected one network, found {}{}{}", names.size(),
                                      names.empty() ? "" : ": ", fmt::join(names, ", ")));
  }
  return read_network(object.get(names.front()), names.front());
}

bool looks_like_file(const std::string& name) {
  std::error_code error;  // a name that the file system rejects is no file
  return name.find('/') != std::string::npos || name.ends_with(".json") || fs::exists(name, error);
}

}  // namespace

NetworkDescription load_network(const std::string& name_or_file, const fs::path& builtin) {
  const JsonFile file(builtin);
  JsonObject networks(file.root());
  if (networks.has(name_or_file)) return read_network(networks.get(name_or_file), name_or_file);
  if (looks_like_file(name_or_file)) return read_file(name_or_file);
  throw UnknownName("network", name_or_file, networks.keys());
}

std::vector<std::string> network_names(const fs::path& builtin) {
  const JsonFile file(builtin);
  return JsonObject(file.root()).keys();
}

}  // namespace stepladder::network
