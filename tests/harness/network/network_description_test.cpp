// Network descriptions are read from JSON files. Errors name the place and the expectation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/io/file.hpp"
#include "harness/io/glob.hpp"
#include "harness/io/nearest.hpp"
#include "harness/network/description.hpp"
#include "harness/network/load.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder::network {
namespace {

namespace fs = std::filesystem;
using sgd_update::Optimizer;

fs::path builtin() { return source_directory() / "bench" / "networks.json"; }

// A valid network. Tests replace a part of it.
struct Text {
  std::string input = R"({"channels": 1, "height": 8, "width": 6})";
  std::string classes = "10";
  std::string batch = "4";
  std::string layers = R"([{"type": "fully_connected", "outputs": 10},
    {"type": "softmax_cross_entropy"}])";
  std::string optimizer = R"({"type": "sgd", "learning_rate": 0.1})";
  std::string more = "";

  std::string json() const {
    return "{\n  \"input\": " + input + ",\n  \"classes\": " + classes +
           ",\n  \"batch\": " + batch + ",\n  \"layers\": " + layers +
           ",\n  \"optimizer\": " + optimizer + more + "\n}\n";
  }
};

NetworkDescription parse(const std::string& json) {
  const TemporaryFolder folder;
  return load_network(folder.write("network.json", json).string(), builtin());
}

std::string parse_error(const std::string& json) {
  return error_of([&] { parse(json); });
}

// The network of `layers` (JSON objects) between the input and a loss over ten classes.
NetworkDescription with_layers(const std::string& layers, Text text = {}) {
  text.layers = "[" + layers + R"(, {"type": "fully_connected", "outputs": 10},
                                    {"type": "softmax_cross_entropy"}])";
  return parse(text.json());
}

std::vector<std::string> names_of(const NetworkDescription& network) {
  std::vector<std::string> names;
  for (const LayerDescription& layer : network.layers) names.push_back(layer.name);
  return names;
}

OptimizerDescription with_optimizer(const std::string& optimizer) {
  Text text;
  text.optimizer = optimizer;
  return parse(text.json()).optimizer;
}

TEST(BuiltinNetworks, HaveThePublishedNumbersOfParameters) {
  for (const auto& [name, parameters] :
       std::vector<std::pair<std::string, std::int64_t>>{{"mlp", 535'818},
                                                         {"mnist_cnn", 1'663'370},
                                                         {"cifar_cnn", 1'068'298},
                                                         {"alexnet", 60'965'224}}) {
    const NetworkDescription network = load_network(name, builtin());
    EXPECT_EQ(network.name, name);
    EXPECT_EQ(parameter_count(network), parameters) << name;
    EXPECT_EQ(parameter_count(without_optional(network)), parameters) << name;
  }
  EXPECT_EQ(network_names(builtin()),
            (std::vector<std::string>{"alexnet", "cifar_cnn", "mlp", "mnist_cnn"}));
}

TEST(BuiltinNetworks, MnistCnnIsReadAsWritten) {
  const NetworkDescription network = load_network("mnist_cnn", builtin());
  EXPECT_EQ(network.batch, 64);
  EXPECT_EQ(network.classes, 10);
  EXPECT_EQ(network.input, (Shape{1, 28, 28}));
  EXPECT_EQ(network.normal_std, 0.1);
  EXPECT_NE(network.source.find("Table 6"), std::string::npos);
  EXPECT_EQ(network.optimizer.type, Optimizer::momentum);
  EXPECT_EQ(network.optimizer.momentum, 0.9);
  EXPECT_EQ(network.optimizer.learning_rate, 0.01);
  EXPECT_EQ(network.optimizer.decay, 0.95);
  EXPECT_EQ(network.optimizer.decay_every_samples, 50'000);
  EXPECT_EQ(network.optimizer.weight_decay, 0.0005);
  EXPECT_EQ(network.optimizer.weight_decay_on,
            OptimizerDescription::DecayedWeights::fully_connected);

  std::vector<Shape> outputs;
  for (const LayerDescription& layer : network.layers) outputs.push_back(layer.output);
  EXPECT_EQ(names_of(network),
            (std::vector<std::string>{"conv1", "relu1", "lrn1", "pool1", "conv2", "relu2", "lrn2",
                                      "pool2", "fc1", "relu3", "fc2", "softmax1"}));
  const Shape first{32, 28, 28}, halved{32, 14, 14}, second{64, 14, 14}, quartered{64, 7, 7};
  const Shape hidden{512, 1, 1}, classes{10, 1, 1};
  EXPECT_EQ(outputs, (std::vector<Shape>{first, first, first, halved, second, second, second,
                                         quartered, hidden, hidden, classes, classes}));
  EXPECT_EQ(network.layers[4].input, halved);
  EXPECT_EQ(network.layers[8].weights(), 64 * 7 * 7 * 512);
  EXPECT_EQ(network.layers[8].biases(), 512);
  EXPECT_EQ(network.layers[3].weights() + network.layers[3].biases(), 0);
}

TEST(BuiltinNetworks, WithoutOptionalKeepsTheOtherLayersAndTheirNames) {
  const NetworkDescription network = without_optional(load_network("mnist_cnn", builtin()));
  EXPECT_EQ(names_of(network),
            (std::vector<std::string>{"conv1", "relu1", "pool1", "conv2", "relu2", "pool2", "fc1",
                                      "relu3", "fc2", "softmax1"}));
}

// network_gradient_test.cpp checks that both orders compute the same function.
TEST(BuiltinNetworks, PoolingRunsBeforeReluAndNothingElseChanges) {
  const auto order = [](const char* name) {
    const NetworkDescription network = pool_before_relu(load_network(name, builtin()));
    for (std::size_t i = 0; i < network.layers.size(); ++i)
      EXPECT_EQ(network.layers[i].input, i == 0 ? network.input : network.layers[i - 1].output);
    return names_of(network);
  };
  EXPECT_EQ(order("cifar_cnn"),
            (std::vector<std::string>{"conv1", "pool1", "relu1", "dropout1", "conv2", "pool2",
                                      "relu2", "fc1", "relu3", "fc2", "relu4", "fc3", "softmax1"}));
  EXPECT_EQ(order("mnist_cnn"),
            (std::vector<std::string>{"conv1", "relu1", "lrn1", "pool1", "conv2", "relu2", "lrn2",
                                      "pool2", "fc1", "relu3", "fc2", "softmax1"}));
}

TEST(BuiltinNetworks, OverlappingPoolsAndGroupsHaveTheRightShapes) {
  const NetworkDescription cifar = load_network("cifar_cnn", builtin());
  EXPECT_EQ(cifar.layers[2].output, (Shape{64, 12, 12}));
  EXPECT_EQ(cifar.layers[6].output, (Shape{64, 6, 6}));
  const NetworkDescription alexnet = load_network("alexnet", builtin());
  EXPECT_EQ(alexnet.layers[0].output, (Shape{96, 55, 55}));
  EXPECT_EQ(alexnet.layers[2].output, (Shape{96, 27, 27}));
  EXPECT_EQ(alexnet.layers[3].weights(), 256 * 48 * 5 * 5);
}

TEST(Layers, SizesMayDifferInHeightAndWidth) {
  const NetworkDescription network = with_layers(
      R"({"type": "convolution", "filters": 4, "kernel_h": 3, "kernel_w": 5, "stride_h": 2,
          "stride_w": 1, "pad_h": 1, "pad_w": 0, "groups": 1},
         {"type": "max_pool", "window_h": 2, "window_w": 1, "pad": 0})");
  const auto& convolution = std::get<Convolution>(network.layers[0].layer);
  EXPECT_EQ(shape(problem_of(convolution, network.layers[0].input, 4)),
            "n4 c1 h8 w6 k4 r3 s5 stride2x1 pad1x0 g1");
  EXPECT_EQ(network.layers[0].output, (Shape{4, 4, 2}));
  const auto& pool = std::get<MaxPool>(network.layers[1].layer);
  EXPECT_EQ(pool.stride_h, 2) << "the stride is the window unless given";
  EXPECT_EQ(pool.stride_w, 1);
  EXPECT_EQ(network.layers[1].output, (Shape{4, 2, 2}));
}

TEST(Layers, AnAveragePoolCountsThePaddingUnlessTold) {
  const NetworkDescription network = with_layers(
      R"({"type": "average_pool", "window": 3, "stride": 1, "pad": 1},
         {"type": "average_pool", "window": 2, "count": "exclude_padding"},
         {"type": "average_pool", "window_h": 4, "window_w": 3, "count": "include_padding"})");
  using average_pool::Count;
  const auto& same = std::get<AveragePool>(network.layers[0].layer);
  EXPECT_EQ(same.count, Count::include_padding);
  EXPECT_EQ(network.layers[0].name, "average1");
  EXPECT_EQ(network.layers[0].output, network.layers[0].input);
  const auto& half = std::get<AveragePool>(network.layers[1].layer);
  EXPECT_EQ(half.count, Count::exclude_padding);
  EXPECT_EQ(half.stride_w, 2) << "the stride is the window unless given";
  EXPECT_EQ(problem_of(half, network.layers[1].input, 5).count, Count::exclude_padding);
  EXPECT_EQ(problem_of(half, network.layers[1].input, 5).batch, 5);
  EXPECT_EQ(network.layers[2].output, (Shape{1, 1, 1})) << "global average pooling";
}

TEST(Layers, DefaultsAreTheDocumentedOnes) {
  const NetworkDescription network = with_layers(
      R"({"type": "convolution", "filters": 2, "kernel": 3}, {"type": "dropout"},
         {"type": "local_response_normalization"}, {"type": "sigmoid"}, {"type": "tanh"})");
  const auto& convolution = std::get<Convolution>(network.layers[0].layer);
  EXPECT_EQ(convolution.stride_h * convolution.stride_w * convolution.groups, 1);
  EXPECT_EQ(convolution.pad_h + convolution.pad_w, 0);
  EXPECT_EQ(std::get<Dropout>(network.layers[1].layer).rate, 0.5);
  const auto& lrn = std::get<LocalResponseNormalization>(network.layers[2].layer);
  EXPECT_EQ(lrn.size, 5);
  EXPECT_EQ(lrn.alpha, 1e-4);
  EXPECT_EQ(lrn.beta, 0.75);
  EXPECT_EQ(lrn.k, 2);
  EXPECT_TRUE(std::holds_alternative<Sigmoid>(network.layers[3].layer));
  EXPECT_TRUE(std::holds_alternative<Tanh>(network.layers[4].layer));
  EXPECT_FALSE(network.layers[0].optional);
  EXPECT_FALSE(network.normal_std.has_value());
}

TEST(Layers, DerivedNamesAvoidGivenOnes) {
  const NetworkDescription network = with_layers(
      R"({"type": "relu"}, {"type": "relu", "name": "relu2"}, {"type": "relu"},
         {"type": "tanh", "name": "relu1"})");
  EXPECT_EQ(names_of(network),
            (std::vector<std::string>{"relu3", "relu2", "relu4", "relu1", "fc1", "softmax1"}));
}

TEST(Optimizers, DefaultsAreTheDocumentedOnes) {
  const OptimizerDescription adadelta = with_optimizer(R"({"type": "adadelta"})");
  EXPECT_EQ(adadelta.learning_rate, 1);
  EXPECT_EQ(adadelta.rho, 0.95);
  EXPECT_EQ(adadelta.epsilon, 1e-6);
  const OptimizerDescription rmsprop = with_optimizer(R"({"type": "rmsprop"})");
  EXPECT_EQ(rmsprop.learning_rate, 0.001);
  EXPECT_EQ(rmsprop.rho, 0.9);
  EXPECT_EQ(rmsprop.epsilon, 1e-8);
  const OptimizerDescription adam = with_optimizer(R"({"type": "adam"})");
  EXPECT_EQ(adam.learning_rate, 0.001);
  EXPECT_EQ(adam.beta1, 0.9);
  EXPECT_EQ(adam.beta2, 0.999);
  EXPECT_EQ(adam.epsilon, 1e-8);
  const OptimizerDescription adagrad =
      with_optimizer(R"({"type": "adagrad", "learning_rate": 0.01})");
  EXPECT_EQ(adagrad.epsilon, 1e-8);
  EXPECT_EQ(adagrad.decay, 1);
  EXPECT_EQ(adagrad.decay_every_samples, 0);
  EXPECT_EQ(adagrad.weight_decay, 0);
  EXPECT_EQ(adagrad.weight_decay_on, OptimizerDescription::DecayedWeights::all);
  EXPECT_EQ(with_optimizer(R"({"type": "momentum", "learning_rate": 1})").momentum, 0.9);
}

TEST(Optimizers, GivenValuesReplaceTheDefaults) {
  const OptimizerDescription adam = with_optimizer(
      R"({"type": "adam", "learning_rate": 2, "beta1": 0, "beta2": 0.5, "epsilon": 1,
          "weight_decay": 3, "weight_decay_on": "convolution"})");
  EXPECT_EQ(adam.learning_rate, 2);
  EXPECT_EQ(adam.beta1, 0);
  EXPECT_EQ(adam.beta2, 0.5);
  EXPECT_EQ(adam.epsilon, 1);
  EXPECT_EQ(adam.weight_decay, 3);
  EXPECT_EQ(adam.weight_decay_on, OptimizerDescription::DecayedWeights::convolution);
  EXPECT_EQ(with_optimizer(R"({"type": "adadelta", "rho": 0.5, "epsilon": 0.25})").epsilon, 0.25);
}

TEST(InitialDeviation, IsTheGivenOneOrHeBeforeReluOrGlorotElsewhere) {
  const std::string layers =
      R"({"type": "convolution", "filters": 6, "kernel": 3, "groups": 2},
         {"type": "max_pool", "window": 2}, {"type": "relu"},
         {"type": "convolution", "filters": 4, "kernel": 1}, {"type": "tanh"})";
  Text text;
  text.input = R"({"channels": 2, "height": 8, "width": 6})";
  const NetworkDescription network = with_layers(layers, text);
  EXPECT_DOUBLE_EQ(initial_deviation(network, 0), std::sqrt(2.0 / 9));
  EXPECT_DOUBLE_EQ(initial_deviation(network, 3), std::sqrt(2.0 / (6 + 4)));
  const double features = 4 * 3 * 2;
  EXPECT_DOUBLE_EQ(initial_deviation(network, 5), std::sqrt(2.0 / (features + 10)));
  EXPECT_EQ(initial_deviation(network, 1), 0);

  text.more = R"(, "initial_weights": {"normal_std": 0.25})";
  EXPECT_EQ(initial_deviation(with_layers(layers, text), 3), 0.25);
}

TEST(Problems, AreThoseOfTheLayer) {
  const NetworkDescription alexnet = load_network("alexnet", builtin());
  const convolution::Problem conv2 =
      problem_of(std::get<Convolution>(alexnet.layers[3].layer), alexnet.layers[3].input, 128);
  EXPECT_EQ(shape(conv2), "n128 c96 h27 w27 k256 r5 s5 stride1x1 pad2x2 g2");
  EXPECT_EQ(conv2.out_h(), 27);
  const NetworkDescription cifar = load_network("cifar_cnn", builtin());
  const max_pool::Problem pool1 =
      problem_of(std::get<MaxPool>(cifar.layers[2].layer), cifar.layers[2].input, 128);
  EXPECT_EQ(pool1.channels, 64);
  EXPECT_EQ(pool1.out_w(), 12);
}

TEST(LoadNetwork, ReadsAFileWithOneNetworkOrOneNetworkUnderItsName) {
  const TemporaryFolder folder;
  const fs::path plain = folder.write("small_net.json", Text{}.json());
  EXPECT_EQ(load_network(plain.string(), builtin()).name, "small_net");
  const fs::path named = folder.write("other.json", "{\"mine\": " + Text{}.json() + "}");
  EXPECT_EQ(load_network(named.string(), builtin()).name, "mine");
  const fs::path without_ending = folder.write("network", Text{}.json());
  EXPECT_EQ(load_network(without_ending.string(), builtin()).layers.size(), 2U);
}

TEST(LoadNetwork, AFileWithSeveralNetworksOrNoneIsAnError) {
  EXPECT_TRUE(says(parse_error("{\"a\": {}, \"b\": {}}"),
                   {"network.json:1: /:", "expected one network", "found 2: a, b"}));
  EXPECT_TRUE(says(parse_error("{}"), {"expected one network", "found 0"}));
}

TEST(LoadNetwork, AnUnknownNameSuggestsTheNearest) {
  try {
    load_network("mnist_cn", builtin());
    FAIL() << "expected UnknownName";
  } catch (const UnknownName& error) {
    EXPECT_EQ(error.kind(), "network");
    EXPECT_EQ(error.name(), "mnist_cn");
    ASSERT_FALSE(error.suggestions().empty());
    EXPECT_EQ(error.suggestions().front(), "mnist_cnn");
    EXPECT_TRUE(says(error.what(), {"unknown network 'mnist_cn'", "mnist_cnn"}));
  }
}

TEST(LoadNetwork, AMissingFileIsNotAnUnknownName) {
  for (const char* name : {"no/such/network", "no_such_network.json"}) {
    try {
      load_network(name, builtin());
      FAIL() << "expected an error";
    } catch (const UnknownName&) {
      FAIL() << name << " looks like a file";
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(says(error.what(), {name, "cannot open"}));
    }
  }
  const TemporaryFolder folder;
  EXPECT_TRUE(says(error_of([&] { load_network(folder.path().string(), builtin()); }),
                   {folder.path().string(), "cannot read"}));
}

TEST(Nearest, CountsEditsAndSwapsOfNeighboursIgnoringCase) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("matmul", "mamtul"), 1);
  EXPECT_EQ(edit_distance("MATMUL", "matmul"), 0);
}

TEST(Nearest, PrefersCandidatesThatContainTheName) {
  const std::vector<std::string> primitives{"matmul", "convolution", "max_pool", "sgd_update",
                                            "all_reduce"};
  EXPECT_EQ(nearest_names("conv", primitives).front(), "convolution");
  EXPECT_EQ(nearest_names("allreduce", primitives).front(), "all_reduce");
  EXPECT_EQ(nearest_names("maxpool", primitives).front(), "max_pool");
  EXPECT_EQ(nearest_names("matmull", primitives).front(), "matmul");
  EXPECT_EQ(nearest_names("x", primitives).size(), 3U);
  EXPECT_EQ(nearest_names("x", primitives, 9).size(), 5U);
  EXPECT_TRUE(nearest_names("x", {}).empty());
  EXPECT_TRUE(says(UnknownName("suite", "x", {}).what(), {"unknown suite 'x'"}));
}

// Texts and, after the name of the file, their errors, as globs.
using Cases = std::vector<std::pair<std::string, const char*>>;

// Each text is, in what `put_into_json` makes of it, an error that names file, place and
// expectation.
template <class PutIntoJson>
void expect_errors(const PutIntoJson& put_into_json, const Cases& cases) {
  for (const auto& [text, error] : cases) {
    const std::string found = parse_error(put_into_json(text));
    EXPECT_TRUE(glob_matches(std::string("*network.json:") + error + "*", found))
        << "expected " << error << "\nfound " << found << "\nof " << text.substr(0, 500);
  }
}

std::string json_with(std::string Text::*part, const std::string& value) {
  Text text;
  text.*part = value;
  return text.json();
}

// What puts a text into the place of that part.
auto with(std::string Text::*part) {
  return [part](const std::string& value) { return json_with(part, value); };
}

TEST(BadNetworks, Syntax) {
  expect_errors(
      std::identity{},
      {{"", "1:1: expected JSON*unexpected end of input"},
       {"{\n  \"a\": 1\n  \"b\": 2\n}", "3:*syntax error"},
       {"{\"a\": [1, 2", "1:12*syntax error"},
       {Text{}.json() + "\n}", "10:1*syntax error"},
       {"{\"a\": \"\xff\"}", "1:*expected JSON"},
       {"// mlp\n{}", "1:1*syntax error"},
       {"{\"a\": 1e999}", "1:*expected JSON*1e999"},
       {"{\n\"batch\": 1,\n\"batch\": 2}",
        "3: /batch: expected each key once, found 'batch' again"},
       {std::string(100'000, '['), "1:*expected values nested at most 64 deep"},
       {"[1]", "1: /: expected an object, found an array"},
       {"7", "1: /: expected an object, found 7"},
       {"{\n\"batch\": 3}", "1: /: expected a key 'input', found none"},
       {"{\"mine\":\n" + json_with(&Text::batch, "null") + "}", "5: /mine/batch:*found null"}});
}

TEST(BadNetworks, KeysOfANetwork) {
  expect_errors(with(&Text::input),
                {{"{\n\"channels\": 1}", "2: /input: expected a key 'height'"},
                 {R"({"channels": 1000000, "height": 1000000, "width": 1000000})",
                  "5: /layers/0:*1e+18 activations*expected at most"}});
  expect_errors(with(&Text::classes),
                {{"-10", "3: /classes:*-10"},
                 {"12", "6: /layers/1: layer softmax1*12 classes, found 10 features"}});
  expect_errors(with(&Text::batch),
                {{"0", "4: /batch: expected a whole number from 1*found 0"},
                 {"4.5", "4: /batch:*found 4.5"},
                 {"\"64\"", "4: /batch:*\"64\""},
                 {"18446744073709551615", "4: /batch:*found 18446744073709551615"}});
  expect_errors(with(&Text::more),
                {{",\n  \"batches\": 3",
                  "8: /batches: expected one of the keys batch, classes*found 'batches'"},
                 {R"(, "source": 3)", "7: /source: expected a string, found 3"},
                 {R"(, "initial_weights": {})", "7: /initial_weights: expected a key 'normal_std'"},
                 {R"(, "initial_weights": {"normal_std": -1})",
                  "7: /initial_weights/normal_std: expected a number above 0*found -1"},
                 {R"(, "initial_weights": {"normal_std": 1e39})",
                  "7: /initial_weights/normal_std:*3.4e+38*found 1e+39"}});
  expect_errors(with(&Text::layers),
                {{"{}", "5: /layers: expected an array, found an object"},
                 {"[]", "5: /layers: expected 1 to"},
                 {R"([{"type": "fully_connected", "outputs": 10}])",
                  "5: /layers/0: layer fc1*expected softmax_cross_entropy as the last layer"}});
}

std::string one_layer(const std::string& layer) {
  return json_with(&Text::layers, "[\n" + layer + ",\n" +
                                      R"({"type": "fully_connected", "outputs": 10},
                                         {"type": "softmax_cross_entropy"}])");
}

TEST(BadNetworks, Layers) {
  expect_errors(one_layer,
                {{"\"relu\"", "6: /layers/0: expected an object, found \"relu\""},
                 {"{}", "6: /layers/0: expected a key 'type'"},
                 {R"({"type": "convolutoin"})",
                  "6: /layers/0/type: expected one of average_pool, convolution, dropout*found "
                  "\"convolutoin\""},
                 {R"({"type": "convolution", "filters": 3, "kernel": 3,
            "padding": 1})",
                  "7: /layers/0/padding: expected one of the keys filters*found 'padding'"},
                 {R"({"type": "convolution", "filters": 3})",
                  "6: /layers/0: expected a key 'kernel', or 'kernel_h' and 'kernel_w'"},
                 {R"({"type": "convolution", "filters": 3, "kernel_h": 3})",
                  "6: /layers/0: expected a key 'kernel_w'"},
                 {R"({"type": "convolution", "filters": 3, "kernel": 3, "kernel_h": 3})",
                  "6: /layers/0: expected either 'kernel' or 'kernel_h' and 'kernel_w'"},
                 {R"({"type": "convolution", "filters": 3, "kernel": 3, "pad": -1})",
                  "6: /layers/0/pad: expected a whole number from 0*found -1"},
                 {R"({"type": "dropout", "rate": 1})",
                  "6: /layers/0/rate: expected a number from 0 to below 1*found 1"},
                 {R"({"type": "local_response_normalization", "size": 4})",
                  "6: /layers/0/size: expected an odd number of channels, found 4"},
                 {R"({"type": "relu", "optional": "yes"})",
                  "6: /layers/0/optional: expected true or false, found \"yes\""},
                 {R"({"type": "relu", "name": "a,b"})",
                  "6: /layers/0/name: expected a name of letters*\"a,b\""},
                 {R"({"type": "relu", "name": "a"}, {"type": "relu", "name": "a"})",
                  "6: /layers/1: expected a name that no other layer has*'a'"},
                 {R"({"type": "softmax_cross_entropy"})",
                  "6: /layers/0: layer softmax1*expected no layer after softmax_cross_entropy"}});
}

TEST(BadNetworks, Shapes) {
  expect_errors(
      one_layer,
      {{R"({"type": "convolution", "name": "big", "filters": 3, "kernel": 9})",
        "6: /layers/0: layer big (convolution)*1x8x6*kernel 9x9"},
       {R"({"type": "convolution", "filters": 3, "kernel": 3, "groups": 2})",
        "6: /layers/0: layer conv1 (convolution)*groups 2"},
       {R"({"type": "max_pool", "window": 2, "pad": 2})",
        "6: /layers/0: layer pool1 (max_pool)*padding 2x2"},
       {R"({"type": "average_pool", "window": 7})",
        "6: /layers/0: layer average1 (average_pool)*window 7x7 is larger"},
       {R"({"type": "average_pool", "window": 2, "count": "padding"})",
        "6: /layers/0/count: expected one of exclude_padding, include_padding*found \"padding\""},
       {R"({"type": "max_pool", "window": 4}, {"type": "max_pool", "window": 2},
           {"type": "max_pool", "window": 2})",
        "6: /layers/1: layer pool2 (max_pool)*1x2x1"},
       {R"({"type": "fully_connected", "outputs": 1000000},
           {"type": "fully_connected", "outputs": 1000000})",
        "7: /layers/1: layer fc2 (fully_connected)*1e+12 weights*expected at most"}});
}

TEST(BadNetworks, Optimizers) {
  expect_errors(with(&Text::optimizer),
                {{R"({"type": "adm"})",
                  "7: /optimizer/type: expected one of adadelta, adagrad, adam*found \"adm\""},
                 {R"({"type": "sgd"})", "7: /optimizer: expected a key 'learning_rate'"},
                 {R"({"type": "sgd", "learning_rate": 0})",
                  "7: /optimizer/learning_rate: expected a number above 0*found 0"},
                 {R"({"type": "sgd", "learning_rate": 1, "momentum": 0.9})",
                  "7: /optimizer/momentum: expected one of the keys*found 'momentum'"},
                 {R"({"type": "momentum", "learning_rate": 1, "momentum": 1})",
                  "7: /optimizer/momentum: expected a number from 0 to below 1"},
                 {R"({"type": "sgd", "learning_rate": 1, "decay": 0.5})",
                  "7: /optimizer: expected a key 'decay_every_samples'"},
                 {R"({"type": "sgd", "learning_rate": 1, "decay": 1.5, "decay_every_samples": 5})",
                  "7: /optimizer/decay: expected a factor above 0, at most 1, found 1.5"},
                 {R"({"type": "sgd", "learning_rate": 1, "weight_decay": -1})",
                  "7: /optimizer/weight_decay: expected a number from 0 to 3.4e+38, found -1"},
                 {R"({"type": "sgd", "learning_rate": 1, "weight_decay_on": "conv"})",
                  "7: /optimizer/weight_decay_on: expected one of all, convolution, "
                  "fully_connected*found \"conv\""}});
}

// Of each key that is used in single precision: a value that double and float judge differently.
TEST(BadNetworks, SinglePrecision) {
  const auto lrn = [](const std::string& values) {
    return one_layer(R"({"type": "local_response_normalization", )" + values + "}");
  };
  expect_errors(one_layer, {{R"({"type": "dropout", "rate": 0.99999999})",
                             "6: /layers/0/rate:*single precision*found 0.99999999"}});
  expect_errors(
      lrn, {{R"("alpha": 1e39)", "6: /layers/0/alpha:*3.4e+38"},
            {R"("beta": 1e39)", "6: /layers/0/beta:*3.4e+38"},
            {R"("alpha": 1e20, "beta": 1e20)", "6: /layers/0/alpha:*2 alpha beta*beta = 1e+20"},
            {R"("k": 1e39)", "6: /layers/0/k:*3.4e+38"},
            {R"("k": 1e-46)", "6: /layers/0/k:*above 0"}});
  expect_errors(
      with(&Text::optimizer),
      {{R"({"type": "sgd", "learning_rate": 1e-46})", "7: /optimizer/learning_rate:*above 0"},
       {R"({"type": "sgd", "learning_rate": 1, "weight_decay": 1e39})",
        "7: /optimizer/weight_decay:*3.4e+38*found 1e+39"},
       {R"({"type": "momentum", "learning_rate": 1, "momentum": 0.99999999999})",
        "7: /optimizer/momentum:*single precision"},
       {R"({"type": "rmsprop", "rho": 0.99999999999})", "7: /optimizer/rho:*single precision"},
       {R"({"type": "adadelta", "rho": 0.99999999999})", "7: /optimizer/rho:*single precision"},
       {R"({"type": "adam", "beta1": 0.99999999999})", "7: /optimizer/beta1:*single precision"},
       {R"({"type": "adam", "beta2": 0.99999999999})", "7: /optimizer/beta2:*single precision"},
       {R"({"type": "adagrad", "learning_rate": 1, "epsilon": 1e-46})",
        "7: /optimizer/epsilon:*above 0"},
       {R"({"type": "adam", "epsilon": 1e-44})", "7: /optimizer/epsilon:*sqrt(1 - beta2)"}});
}

TEST(Networks, ReadTheOutermostNumbersOfSinglePrecision) {
  EXPECT_LT(static_cast<float>(
                std::get<Dropout>(
                    with_layers(R"({"type": "dropout", "rate": 0.99999994})").layers[0].layer)
                    .rate),
            1.0F);
  Text text;
  text.optimizer =
      R"({"type": "adam", "learning_rate": 1.5e-45, "weight_decay": 3.4e38, "beta1": 0.99999994,
          "beta2": 0.99999994, "epsilon": 1e-40})";
  EXPECT_EQ(parse(text.json()).optimizer.weight_decay, 3.4e38);
}

TEST(BadNetworks, AMessageIsOneLineOfText) {
  EXPECT_TRUE(says(parse_error(json_with(&Text::more, R"(, "a\n\u0000b": 1)")),
                   {"/a\\n\\x00b: expected one of the keys", "found 'a\\n\\x00b'"}));
  EXPECT_TRUE(says(parse_error("{\"input\": -\x01}"), {"network.json:1:12: expected JSON", "'-"}));
  EXPECT_TRUE(says(error_of([] { load_network("a\nb", builtin()); }), {"network 'a\\nb'"}));
}

TEST(BadNetworks, AFileOfManyLinesOrLongKeysIsRefusedInTimeAndMemoryOfItsSize) {
  std::string values;
  for (int i = 0; i < 300'000; ++i) values += "0,\n";
  EXPECT_TRUE(says(parse_error(json_with(&Text::input, "[" + values + "0]")),
                   {"network.json:2: /input: expected an object, found an array"}));
  const std::string nested = "{\"" + std::string(200'000, 'k') + "\": [" + values + "0]}";
  EXPECT_TRUE(says(parse_error(json_with(&Text::input, nested)),
                   {"network.json:2: expected JSON pointers of at most 1000 characters, found"}));
}

TEST(WithoutOptional, FailsIfTheOtherLayersDoNotFit) {
  const NetworkDescription network =
      with_layers(R"({"type": "max_pool", "window": 2, "optional": true},
                     {"type": "max_pool", "window": 2})");
  EXPECT_EQ(without_optional(network).layers[0].output, (Shape{1, 4, 3}));
  Text text;
  text.layers = R"([{"type": "fully_connected", "outputs": 10, "optional": true},
                    {"type": "softmax_cross_entropy"}])";
  EXPECT_THROW(without_optional(parse(text.json())), ShapeError);
}

TEST(DamagedNetworks, LoadAsValidNetworksOrAreAnError) {
  const TemporaryFolder folder;
  const std::string whole = "{\"mine\": " + Text{}.json() + "}";
  std::mt19937_64 random(20240608);
  const std::string characters = "{}[]\",:0123456789-+.eEtrufalsn\\ \n\x01\xc3\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    if (random() % 4 == 0) text.resize(random() % text.size());
    for (auto edits = random() % 4; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size();
      const char character = characters[random() % characters.size()];
      switch (random() % 3) {
        case 0:
          text[at] = character;
          break;
        case 1:
          text.insert(at, 1, character);
          break;
        default:
          text.erase(at, 1 + random() % 8);
          break;
      }
    }
    const fs::path path = folder.write("network.json", text);
    try {
      const NetworkDescription network = load_network(path.string(), builtin());
      EXPECT_EQ(network.layers.back().output.features(), network.classes);
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(says(error.what(), {"network.json:"})) << text;
    }
  }
}

}  // namespace
}  // namespace stepladder::network
