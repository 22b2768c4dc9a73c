#include "harness/training/modes/segments.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/common/integer_math.hpp"

namespace stepladder {
namespace {

const network::LayerDescription& layer_named(const network::NetworkDescription& description,
                                             const std::string& name) {
  return *std::ranges::find(description.layers, name, &network::LayerDescription::name);
}

// Calls copy(in whole, in part, count) for each contiguous range of each array.
template <class Copy>
void for_ranges(const std::vector<ParameterSlice>& slices, TrainableNetwork& whole,
                TrainableNetwork& part, const Copy& copy) {
  const auto of_whole = whole.trained(), of_part = part.trained();
  for (std::size_t array = 0; array < of_whole.size(); ++array)
    for (const ParameterSlice& slice : slices) {
      const auto all = static_cast<std::size_t>(slice.all);
      const auto from = static_cast<std::size_t>(slice.from),
                 count = static_cast<std::size_t>(slice.count);
      const std::size_t rows = slice.whole.count / all;
      float *in_whole = of_whole[array].data() + slice.whole.offset,
            *in_part = of_part[array].data() + slice.part.offset;
      if (slice.is_by_column)
        for (std::size_t row = 0; row < rows; ++row)
          copy(in_whole + row * all + from, in_part + row * count, count);
      else
        copy(in_whole + from * rows, in_part, count * rows);
    }
}

}  // namespace

std::vector<Segment> segments_of(const network::NetworkDescription& ordered, bool by_channel) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < ordered.layers.size(); ++i) {
    const network::LayerDescription& layer = ordered.layers[i];
    const bool needs_channels = network::is<network::LocalResponseNormalization>(layer) ||
                                network::is<network::SoftmaxCrossEntropy>(layer);
    if (i == 0 || layer.weights() > 0 || (by_channel && needs_channels)) segments.push_back({i, i});
    segments.back().end = i + 1;
  }
  return segments;
}

std::vector<SplitSegment> split_segments(const network::NetworkDescription& network, int ranks) {
  const network::NetworkDescription ordered = network::pool_before_relu(network);
  std::vector<SplitSegment> segments;
  for (const Segment& range : segments_of(ordered, true)) {
    SplitSegment segment;
    segment.part = network::part_of(ordered, range.first, range.end);
    network::LayerDescription& first = segment.part.layers.front();
    auto* convolution = std::get_if<network::Convolution>(&first.layer);
    auto* connected = std::get_if<network::FullyConnected>(&first.layer);
    segment.layer = first.name;
    segment.values = static_cast<double>(first.input.features());
    const std::int64_t groups = convolution != nullptr ? convolution->groups : 1;
    segment.is_split =
        ranks > 1 &&
        (connected != nullptr ||
         (convolution != nullptr && (groups == 1 || groups % ranks == 0 || ranks % groups == 0)));
    if (segment.is_split) {
      segment.receives_own = !segments.empty() && segments.back().is_split && groups % ranks == 0;
      if (convolution != nullptr) {
        segment.part.input.channels /= groups % ranks == 0 ? ranks : groups;
        convolution->filters = ceil_div(convolution->filters, std::int64_t{ranks});
        convolution->groups = std::max<std::int64_t>(1, groups / ranks);
      } else {
        connected->outputs = ceil_div(connected->outputs, std::int64_t{ranks});
      }
      network::infer_shapes(segment.part);
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

// longest[s][n]: of the first n segments in s stages, the last of which begins at segment
// begin[s][n].
std::vector<std::size_t> balanced_stages(const std::vector<double>& seconds, std::size_t stages) {
  const std::size_t count = seconds.size();
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector longest(stages + 1, std::vector<double>(count + 1, never));
  std::vector begin(stages + 1, std::vector<std::size_t>(count + 1, 0));
  longest[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s)
    for (std::size_t n = s; n <= count; ++n) {
      double last = 0;
      for (std::size_t from = n; from-- > s - 1;) {
        last += seconds[from];
        const double whole = std::max(longest[s - 1][from], last);
        if (whole < longest[s][n]) longest[s][n] = whole, begin[s][n] = from;
      }
    }
  std::vector<std::size_t> firsts(stages);
  for (std::size_t s = stages, n = count; s > 0; --s) firsts[s - 1] = n = begin[s][n];
  return firsts;
}

std::vector<ParameterSlice> slices_of(TrainableNetwork& whole, TrainableNetwork& part,
                                      std::int64_t from) {
  std::vector<ParameterSlice> slices;
  for (const ParameterRange& range : part.parameter_list()) {
    const auto same = std::ranges::find(whole.parameter_list(), range.name, &ParameterRange::name);
    const std::string layer = range.name.substr(0, range.name.rfind('.'));
    const network::LayerDescription& of_whole = layer_named(whole.description(), layer);
    const std::int64_t all = of_whole.output.channels,
                       count = layer_named(part.description(), layer).output.channels;
    slices.push_back(
        {*same, range, all, from, count,
         network::is<network::FullyConnected>(of_whole) && range.name.ends_with(".weights")});
  }
  return slices;
}

void take_slices(const std::vector<ParameterSlice>& slices, TrainableNetwork& whole,
                 TrainableNetwork& part) {
  for_ranges(slices, whole, part, [](const float* in_whole, float* in_part, std::size_t count) {
    std::copy_n(in_whole, count, in_part);
  });
}

void put_slices(const std::vector<ParameterSlice>& slices, TrainableNetwork& part,
                TrainableNetwork& whole) {
  for_ranges(slices, whole, part, [](float* in_whole, const float* in_part, std::size_t count) {
    std::copy_n(in_part, count, in_whole);
  });
}

}  // namespace stepladder
