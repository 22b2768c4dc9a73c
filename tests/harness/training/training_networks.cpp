#include "tests/harness/training/training_networks.hpp"

#include <fmt/format.h>

#include <utility>

namespace stepladder {
namespace {

network::Layer random_activation(Random& random) {
  switch (random.integer(0, 2)) {
    case 0:
      return network::Relu{};
    case 1:
      return network::Sigmoid{};
    default:
      return network::Tanh{};
  }
}

// A layer with a spatial output.
network::Layer random_spatial_layer(Random& random, std::int64_t channels, bool with_average_pool) {
  switch (random.integer(0, with_average_pool ? 5 : 4)) {
    case 0: {
      const std::int64_t h = random.integer(1, 3), w = random.integer(1, 3);
      const std::int64_t down = random.integer(1, 3), right = random.integer(1, 3);
      return network::MaxPool{
          h, w, down, right, random.integer(0, h - 1), random.integer(0, w - 1)};
    }
    case 5: {
      const std::int64_t h = random.integer(1, 4), w = random.integer(1, 4);
      const std::int64_t down = random.integer(1, 3), right = random.integer(1, 3);
      const std::int64_t top = random.integer(0, h - 1), left = random.integer(0, w - 1);
      using average_pool::Count;
      const Count count = random.coin() ? Count::include_padding : Count::exclude_padding;
      return network::AveragePool{h, w, down, right, top, left, count};
    }
    case 1:
      return network::LocalResponseNormalization{2 * random.integer(0, 2) + 1, 0.5, 0.75, 1.0};
    case 2:
      return network::Dropout{0.3};
    default: {
      const std::int64_t groups = channels % 2 == 0 && random.coin() ? 2 : 1;
      return network::Convolution{.filters = 2 * random.integer(1, 3),
                                  .kernel_h = random.integer(1, 4),
                                  .kernel_w = random.integer(1, 4),
                                  .stride_h = random.integer(1, 2),
                                  .stride_w = random.integer(1, 2),
                                  .pad_h = random.integer(0, 2),
                                  .pad_w = random.integer(0, 2),
                                  .groups = groups};
    }
  }
}

}  // namespace

network::NetworkDescription small_network(std::int64_t batch) {
  network::NetworkDescription small;
  small.name = "small";
  small.input = {1, 6, 6};
  small.classes = 3;
  small.batch = batch;
  const auto add = [&](const char* name, network::Layer layer) {
    network::LayerDescription& added = small.layers.emplace_back();
    added.name = name;
    added.layer = std::move(layer);
  };
  add("conv", network::Convolution{.filters = 4, .kernel_h = 3, .kernel_w = 3});
  add("relu", network::Relu{});
  add("hidden", network::FullyConnected{20});
  add("dropout", network::Dropout{0.8});
  add("output", network::FullyConnected{3});
  add("loss", network::SoftmaxCrossEntropy{});
  small.layers[3].optional = true;
  small.optimizer.learning_rate = 0.1;
  network::infer_shapes(small);
  return small;
}

data::Dataset bright_rows(int count, std::uint64_t seed) {
  data::Dataset set{1, 6, 6, 3, {}, {}, "generated"};
  Random random(seed, "rows");
  for (int n = 0; n < count; ++n) {
    const auto label = random.integer(0, 2);
    set.labels.push_back(static_cast<std::uint8_t>(label));
    for (int pixel = 0; pixel < 36; ++pixel)
      set.images.push_back(random.uniform(-1, 1) + (pixel / 6 == 2 * label ? 1.0F : 0.0F));
  }
  return set;
}

network::NetworkDescription random_network(std::uint64_t seed, bool with_average_pool) {
  Random random(seed, "network");
  for (;;) {
    network::NetworkDescription drawn;
    drawn.name = fmt::format("random_{}", seed);
    drawn.input = {random.integer(1, 3), random.integer(4, 12), random.integer(4, 12)};
    drawn.classes = random.integer(2, 12);
    drawn.batch = random.integer(1, 9);
    drawn.optimizer.learning_rate = 0.05;
    const auto add = [&](network::Layer layer) {
      network::LayerDescription& added = drawn.layers.emplace_back();
      added.name = fmt::format("layer{}", drawn.layers.size());
      added.layer = std::move(layer);
    };
    std::int64_t channels = drawn.input.channels;
    for (std::int64_t left = random.integer(0, 4); left > 0; --left) {
      add(random_spatial_layer(random, channels, with_average_pool));
      if (const auto* c = std::get_if<network::Convolution>(&drawn.layers.back().layer))
        channels = c->filters;
      if (random.coin()) add(random_activation(random));
    }
    for (std::int64_t left = random.integer(0, 2); left > 0; --left) {
      add(network::FullyConnected{random.integer(1, 40)});
      add(random_activation(random));
      if (random.coin()) add(network::Dropout{0.5});
    }
    add(network::FullyConnected{drawn.classes});
    add(network::SoftmaxCrossEntropy{});
    try {
      network::infer_shapes(drawn);
      return drawn;
    } catch (const network::ShapeError&) {
      // a window is larger than its image: draw again
    }
  }
}

}  // namespace stepladder
