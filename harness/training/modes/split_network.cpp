#include "harness/training/modes/split_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/common/cpu/partition.hpp"

namespace stepladder {
namespace {

using network::NetworkDescription;

// Channels [from, from + count).
struct Channels {
  std::int64_t from, count;
  bool operator==(const Channels&) const = default;
};

Channels channels_of(std::int64_t all, int rank, int ranks) {
  const auto [begin, end] = partition(all, ranks, rank, 1);
  return {begin, end - begin};
}

// The groups of a convolution can be divided so that no rank has filters of several in part.
bool can_split_groups(std::int64_t groups, int ranks) {
  return groups == 1 || groups % ranks == 0 || ranks % groups == 0;
}

}  // namespace

// A segment of the network on this rank.
struct SplitNetwork::Part {
  bool is_split;                  // each rank has some of its channels; else each has all
  std::vector<Channels> outputs;  // [rank]
  std::vector<Channels> inputs;   // [rank], that the rank needs
  std::int64_t in_channels, in_spatial, out_channels, out_spatial;  // of the whole segment
  std::unique_ptr<TrainableNetwork> network;  // null if this rank has no channel
  std::vector<ParameterSlice> slices;
  std::string layer;          // its first one
  bool receives_own = false;  // the inputs of each rank are its outputs of the part before
  std::vector<float> full_input, full_gradient;  // [batch, in_channels, in_spatial] if exchanged
};

SplitNetwork::SplitNetwork(const TrainingSetup& setup, const Communicator& communicator)
    : communicator_(communicator) {
  const int rank = communicator.rank(), ranks = communicator.ranks();
  const NetworkOptions options{.threads = setup.threads,
                               .seed = setup.seed,
                               .exchange = Exchange::none,
                               .shared_gradients = false,
                               .alone = true};
  const NetworkDescription ordered = network::pool_before_relu(setup.description);
  whole_ = std::make_unique<TrainableNetwork>(ordered, setup.use, options, *setup.plans);
  for (const Segment& segment : segments_of(ordered, true)) {
    NetworkDescription description = network::part_of(ordered, segment.first, segment.end);
    network::LayerDescription& first = description.layers.front();
    auto part = std::make_unique<Part>();
    auto* convolution = std::get_if<network::Convolution>(&first.layer);
    auto* connected = std::get_if<network::FullyConnected>(&first.layer);
    part->layer = first.name;
    part->in_channels = first.input.channels;
    part->in_spatial = first.input.spatial();
    part->out_channels = first.output.channels;
    part->out_spatial = description.layers.back().output.spatial();
    if (convolution != nullptr && !can_split_groups(convolution->groups, ranks))
      throw std::runtime_error(
          fmt::format("model_parallel: the {} groups of {} cannot be divided among {} ranks",
                      convolution->groups, first.name, ranks));
    part->is_split = ranks > 1 && (connected != nullptr || convolution != nullptr);
    for (int r = 0; r < ranks; ++r) {
      const std::int64_t groups = convolution != nullptr ? convolution->groups : 1;
      const Channels all_in{0, part->in_channels}, all_out{0, part->out_channels};
      part->outputs.push_back(part->is_split ? channels_of(part->out_channels, r, ranks) : all_out);
      if (!part->is_split || groups == 1)
        part->inputs.push_back(all_in);
      else if (groups % ranks == 0)
        part->inputs.push_back(channels_of(part->in_channels, r, ranks));
      else  // several ranks share a group
        part->inputs.push_back(channels_of(part->in_channels, static_cast<int>(r * groups / ranks),
                                           static_cast<int>(groups)));
    }
    const Channels own = part->outputs[static_cast<std::size_t>(rank)],
                   input = part->inputs[static_cast<std::size_t>(rank)];
    if (own.count > 0) {
      if (part->is_split) {
        description.input.channels = input.count;
        if (convolution != nullptr) {
          convolution->filters = own.count;
          convolution->groups = std::max<std::int64_t>(1, convolution->groups / ranks);
        } else {
          connected->outputs = own.count;
        }
        network::infer_shapes(description);
      }
      NetworkOptions of_part = options;
      of_part.input_gradient = !parts_.empty();
      of_part.replica = part->is_split ? rank : 0;
      part->network =
          std::make_unique<TrainableNetwork>(description, setup.use, of_part, *setup.plans);
      part->slices = slices_of(*whole_, *part->network, part->is_split ? own.from : 0);
    }
    if (!parts_.empty()) {
      const Part& before = *parts_.back();
      part->receives_own = before.is_split && part->is_split && before.outputs == part->inputs;
      const auto values =
          static_cast<std::size_t>(ordered.batch * part->in_channels * part->in_spatial);
      if (!part->receives_own) {
        part->full_input.resize(values);
        part->full_gradient.resize(values);
      }
    }
    parts_.push_back(std::move(part));
  }
  take();
}

SplitNetwork::~SplitNetwork() = default;

void SplitNetwork::take() {
  for (const auto& part : parts_)
    if (part->network) take_slices(part->slices, *whole_, *part->network);
}

// Of what all ranks have, rank 0's counts once; the rest is added to zeros.
void SplitNetwork::collect() {
  for (const std::span<float> values : whole_->trained()) std::ranges::fill(values, 0.0F);
  for (const auto& part : parts_)
    if (part->network && (part->is_split || communicator_.rank() == 0))
      put_slices(part->slices, *part->network, *whole_);
  for (const std::span<float> values : whole_->trained()) communicator_.sum(values);
}

std::span<float> SplitNetwork::output(Part& part) {
  return part.network ? part.network->output() : std::span<float>();
}

namespace {

// Copies channels between tensors [batch, channels, spatial].
void copy_channels(std::int64_t batch, std::int64_t spatial, const float* from,
                   std::int64_t from_channels, std::int64_t from_first, float* to,
                   std::int64_t to_channels, std::int64_t to_first, std::int64_t count) {
  for (std::int64_t n = 0; n < batch; ++n)
    std::copy_n(from + (n * from_channels + from_first) * spatial, count * spatial,
                to + (n * to_channels + to_first) * spatial);
}

}  // namespace

// A fully connected layer after a convolution sees channels * spatial features: in both views a
// channel of a sample is contiguous.
void SplitNetwork::pass_on(std::size_t from) {
  Part &before = *parts_[from], &next = *parts_[from + 1];
  const std::int64_t batch = whole_->batch(), spatial = next.in_spatial;
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  if (next.receives_own) {
    if (next.network) std::ranges::copy(output(before), next.network->images().begin());
    return;
  }
  if (before.is_split) {
    const double start = training_clock();
    std::vector<Communicator::Part> parts;
    std::int64_t at = 0;
    for (const Channels& channels : before.outputs) {
      parts.push_back({at, batch * channels.count * spatial});
      at += parts.back().count;
    }
    packed_.resize(static_cast<std::size_t>(at));
    std::ranges::copy(output(before), packed_.begin() + parts[rank].from);
    communicator_.gather(packed_, parts);
    for (std::size_t r = 0; r < parts.size(); ++r)
      copy_channels(batch, spatial, packed_.data() + parts[r].from, before.outputs[r].count, 0,
                    next.full_input.data(), next.in_channels, before.outputs[r].from,
                    before.outputs[r].count);
    bytes_ += static_cast<double>(parts[rank].count) * sizeof(float) * (communicator_.ranks() - 1);
    seconds_ += training_clock() - start;
  } else {
    std::ranges::copy(output(before), next.full_input.begin());
  }
  if (next.network) {
    const Channels& own = next.inputs[rank];
    copy_channels(batch, spatial, next.full_input.data(), next.in_channels, own.from,
                  next.network->images().data(), own.count, 0, own.count);
  }
}

void SplitNetwork::pass_back(std::size_t to) {
  Part &before = *parts_[to - 1], &next = *parts_[to];
  const std::int64_t batch = whole_->batch(), spatial = next.in_spatial;
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  const float* gradient = next.network ? next.network->input_gradient().data() : nullptr;
  float* const wanted = before.network ? before.network->output_gradient().data() : nullptr;
  const std::int64_t wanted_count =
      batch * spatial * (before.network ? before.outputs[rank].count : 0);
  if (next.receives_own) {
    if (wanted != nullptr) std::copy_n(gradient, wanted_count, wanted);
    return;
  }
  std::ranges::fill(next.full_gradient, 0.0F);
  if (next.network) {
    const Channels& own = next.inputs[rank];
    copy_channels(batch, spatial, gradient, own.count, 0, next.full_gradient.data(),
                  next.in_channels, own.from, own.count);
  }
  if (!next.is_split) {  // all ranks have the same
    if (wanted != nullptr) {
      const Channels& own = before.outputs[rank];
      copy_channels(batch, spatial, next.full_gradient.data(), next.in_channels, own.from, wanted,
                    own.count, 0, own.count);
    }
    return;
  }
  const double start = training_clock(), ranks = communicator_.ranks();
  const double bytes = static_cast<double>(next.full_gradient.size() * sizeof(float));
  if (before.is_split) {
    std::vector<std::int64_t> lengths;
    packed_.resize(next.full_gradient.size());
    float* at = packed_.data();
    for (const Channels& channels : before.outputs) {
      copy_channels(batch, spatial, next.full_gradient.data(), next.in_channels, channels.from, at,
                    channels.count, 0, channels.count);
      lengths.push_back(batch * spatial * channels.count);
      at += lengths.back();
    }
    received_.resize(static_cast<std::size_t>(lengths[rank]));
    communicator_.reduce_scatter(packed_, lengths, received_);
    if (wanted != nullptr) std::ranges::copy(received_, wanted);
    bytes_ += (ranks - 1) / ranks * bytes;
  } else {
    communicator_.sum(std::span<float>(next.full_gradient));
    std::ranges::copy(next.full_gradient, wanted);
    bytes_ += 2 * (ranks - 1) / ranks * bytes;
  }
  seconds_ += training_clock() - start;
}

double SplitNetwork::forward() {
  if (parts_.front()->network)
    std::ranges::copy(whole_->images(), parts_.front()->network->images().begin());
  TrainableNetwork& last = *parts_.back()->network;
  std::ranges::copy(whole_->labels(), last.labels().begin());
  double loss = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i]->network) loss = parts_[i]->network->forward();
    if (i + 1 < parts_.size()) pass_on(i);
  }
  return loss;
}

void SplitNetwork::backward() {
  for (std::size_t i = parts_.size(); i-- > 0;) {
    if (parts_[i]->network) parts_[i]->network->backward();
    if (i > 0) pass_back(i);
  }
}

void SplitNetwork::update(double learning_rate) {
  for (const auto& part : parts_)
    if (part->network) part->network->update(learning_rate);
}

void SplitNetwork::set_next_step(std::int64_t step) {
  for (const auto& part : parts_)
    if (part->network) part->network->set_next_step(step);
}

void SplitNetwork::after_operations(const std::function<void(const Operation&)>& call) {
  for (const auto& part : parts_)
    if (part->network) part->network->after_operations(call);
}

std::size_t SplitNetwork::parameter_count() const {
  std::size_t count = 0;
  for (const auto& part : parts_)
    if (part->network) count += part->network->parameters().size();
  return count;
}

void SplitNetwork::read_parameters(std::span<float> into) {
  auto at = into.begin();
  for (const auto& part : parts_)
    if (part->network) at = std::ranges::copy(part->network->parameters(), at).out;
}

void SplitNetwork::write_parameters(std::span<const float> from) {
  for (const auto& part : parts_)
    if (part->network) {
      const std::span<float> parameters = part->network->parameters();
      std::ranges::copy(from.first(parameters.size()), parameters.begin());
      from = from.subspan(parameters.size());
    }
}

std::string SplitNetwork::exchanges() const {
  std::string text;
  const double batch = static_cast<double>(whole_->batch()), ranks = communicator_.ranks();
  double all_forward = 0, all_backward = 0;
  for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
    const Part &before = *parts_[i], &next = *parts_[i + 1];
    if (next.receives_own) continue;
    const double values =
        4 * batch * static_cast<double>(next.in_channels * next.in_spatial) * (ranks - 1);
    const double forward = before.is_split ? values : 0, backward = !next.is_split    ? 0
                                                                    : before.is_split ? values
                                                                                      : 2 * values;
    all_forward += forward;
    all_backward += backward;
    if (forward + backward > 0)
      text += fmt::format("{} to {}: {:.2f} MB forward, {:.2f} MB backward\n", before.layer,
                          next.layer, forward / 1e6, backward / 1e6);
  }
  return text + fmt::format(
                    "model parallel: {:.2f} MB forward, {:.2f} MB backward per batch, all "
                    "ranks together",
                    all_forward / 1e6, all_backward / 1e6);
}

}  // namespace stepladder
