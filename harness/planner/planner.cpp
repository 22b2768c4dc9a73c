#include "harness/planner/planner.hpp"

#include <algorithm>

#include "harness/training/modes/segments.hpp"

namespace stepladder {

using network::NetworkDescription;

Prediction predict(const NetworkDescription& network, const UseSpec& use, const Cluster& cluster,
                   const Links& links, LayerTimes& times, const ModeSpec& mode) {
  const ModeEntry& entry = mode_named(mode.name());
  Forecast forecast{network, use, cluster, links, times, mode};
  forecast.predicted.mode = mode.text();
  forecast.predicted.synchronous = entry.info.synchronous;
  try {
    entry.forecast(forecast);
  } catch (const CannotRun& reason) {
    forecast.predicted.why_not = reason.what();
  }
  return forecast.predicted;
}

std::vector<ActivationExchange> activation_exchanges(const NetworkDescription& network, int ranks) {
  const std::vector<SplitSegment> segments = split_segments(network, ranks);
  std::vector<ActivationExchange> exchanges;
  const double others = ranks - 1;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    const SplitSegment &before = segments[i - 1], &next = segments[i];
    const network::LayerDescription& layer =
        *std::ranges::find(network.layers, next.layer, &network::LayerDescription::name);
    const double bytes = 4 * static_cast<double>(network.batch) * next.values * others;
    ActivationExchange exchange{.from = before.layer, .to = next.layer};
    if (!next.receives_own) {
      exchange.forward = before.is_split ? bytes : 0;
      exchange.backward = !next.is_split ? 0 : before.is_split ? bytes : 2 * bytes;
    }
    const auto* convolution = std::get_if<network::Convolution>(&layer.layer);
    const bool is_last = i + 2 >= segments.size();  // before the loss
    if (layer.weights() > 0 && (convolution == nullptr || convolution->groups == 1))
      exchange.survey = is_last ? bytes / ranks : bytes;
    exchanges.push_back(exchange);
  }
  return exchanges;
}

}  // namespace stepladder
