// Pipeline: every rank has a stage, consecutive layers of the network. A batch is divided into m
// micro-batches; while a stage works on one, the stages before it work on the next ones. p equal
// stages are idle for (p-1) / (m+p-1) of a step, the bubble (Huang et al., GPipe, 2019).
//
//     fill_drain  all forward passes, then all backward passes: m sets of activations per stage
//     1f1b        a backward pass as soon as there is one (Narayanan et al., PipeDream, 2019):
//                 at most p sets of activations, the same bubble
//
// Gradients are added over the micro-batches; the update equals that of one process. Stages are
// chosen so that the longest is as short as possible, from the measured times of the layers.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "harness/data/batches.hpp"
#include "harness/training/arithmetic.hpp"
#include "harness/training/forecast.hpp"
#include "harness/training/modes/segments.hpp"
#include "harness/training/modes/synchronous_mode.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "pipeline",
    .idea = "every rank has consecutive layers; micro-batches pass through them",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = true,
    .divides_batches = false,
    .options = {{"micro_batches", "0", "parts of a batch; 0: about four per rank"},
                {"schedule", "1f1b", "1f1b or fill_drain"}},
};

// The parts of a batch, about four for each rank by default. Throws CannotRun.
int micro_batches_of(const ModeSpec& spec, std::int64_t batch, int ranks) {
  std::int64_t count = spec.integer("micro_batches");
  if (count == 0)
    for (count = std::min<std::int64_t>(4 * ranks, batch); batch % count != 0;) --count;
  if (batch % count != 0)
    throw CannotRun(
        fmt::format("a batch of {} cannot be divided into {} equal micro-batches", batch, count));
  return static_cast<int>(count);
}

// Throws CannotRun.
bool is_1f1b(const ModeSpec& spec) {
  const std::string& schedule = spec.value("schedule");
  if (schedule != "1f1b" && schedule != "fill_drain")
    throw CannotRun(fmt::format("schedule={}: expected 1f1b or fill_drain", schedule));
  return schedule == "1f1b";
}

class Pipeline final : public SynchronousMode {
 public:
  Pipeline(const TrainingSetup& setup, const ModeSpec& spec)
      : SynchronousMode(setup, info.name),
        micro_batches_(micro_batches_of(spec, batch(), communicator().ranks())),
        is_1f1b_(is_1f1b(spec)),
        ordered_(network::pool_before_relu(
            network::with_batch(setup.description, setup.description.batch / micro_batches_))),
        whole_(ordered_, setup.use, options(), *setup.plans),
        batches_(*setup.data, static_cast<int>(batch()), setup.seed, setup.shift) {
    waits_for_all_ = false;
    const std::vector<Segment> segments = segments_of(ordered_, false);
    stages_ = std::min(communicator().ranks(), static_cast<int>(segments.size()));
    first_ranges_ = balanced_stages(agreed_times(segments), static_cast<std::size_t>(stages_));
    for (int s = 0; s < stages_; ++s)
      layers_.push_back(
          {segments[first_segment(s)].first,
           s + 1 < stages_ ? segments[first_segment(s + 1)].first : ordered_.layers.size()});
    if (is_idle()) return;
    const int in_flight = is_1f1b_ ? std::min(stages_ - stage(), micro_batches_) : micro_batches_;
    const Segment& own = layers_[static_cast<std::size_t>(stage())];
    for (int i = 0; i < in_flight; ++i) {
      NetworkOptions of_stage = options();
      of_stage.input_gradient = stage() > 0;
      if (i > 0) of_stage.parameters_of = &slots_.front().network->parts();
      slots_.push_back(
          {std::make_unique<TrainableNetwork>(network::part_of(ordered_, own.first, own.end),
                                              setup.use, of_stage, *setup.plans),
           {},
           {}});
      slots_.back().network->after_operations([this](const Operation&) { progress_transfers(); });
    }
    slices_ = slices_of(whole_, stage_network(), 0);
    sums_.resize(stage_network().parameters().size());
    if (is_last()) images_.resize(whole_.images().size());
    labels_.resize(whole_.labels().size());
    take_weights();
  }

  TrainableNetwork& network() override { return whole_; }
  void collect() override {
    if (!is_idle()) put_slices(slices_, stage_network(), whole_);
    for (const std::span<float> values : whole_.trained())
      for (int s = 0; s < stages_; ++s) broadcast_stage(s, values);
  }
  void restart(const Progress& progress) override {
    Mode::restart(progress);
    take_weights();
    if (!is_idle()) stage_network().set_next_step(progress.step + 1);
  }
  // The bubble: the share of the time in which a stage does not compute, mean over the stages.
  std::string remark(const Progress& total) const override {
    const double formula = (stages_ - 1.0) / (micro_batches_ + stages_ - 1.0),
                 computes = total.compute / total.seconds * communicator().ranks() / stages_;
    return fmt::format(
        "pipeline: {} stages, {} micro-batches; idle {:.1f} % of the time, (p-1)/(m+p-1) = {:.1f} "
        "%",
        stages_, micro_batches_, 100 * (1 - computes), 100 * formula);
  }

 private:
  // A set of activations.
  struct Slot {
    std::unique_ptr<TrainableNetwork> network;
    Communicator::Transfer output, input_gradient;  // on their way to the next and previous stage
  };

  NetworkOptions options() const {
    return {.threads = setup().threads,
            .seed = setup().seed,
            .exchange = Exchange::none,
            .shared_gradients = false,
            .alone = true};
  }

  int stage() const { return communicator().rank(); }
  bool is_idle() const { return stage() >= stages_; }
  bool is_last() const { return stage() == stages_ - 1; }
  std::size_t first_segment(int s) const { return first_ranges_[static_cast<std::size_t>(s)]; }
  TrainableNetwork& stage_network() { return *slots_.front().network; }
  Slot& slot(int micro_batch) {
    return slots_[static_cast<std::size_t>(micro_batch) % slots_.size()];
  }

  // Seconds of forward and backward of each segment, those of rank 0.
  std::vector<double> agreed_times(const std::vector<Segment>& segments) {
    batches_.draw(0, 0, whole_.images(), whole_.labels());
    std::vector<double> seconds(segments.size(), 0);
    constexpr int runs = 3;  // the first one warms up
    for (int run = 0; run < runs; ++run) {
      whole_.forward();
      whole_.backward();
      for (const Operation& operation : whole_.operations()) {
        const std::string layer = operation.layer.substr(0, operation.layer.find('.'));
        for (std::size_t s = 0; s < segments.size() && run > 0; ++s)
          for (std::size_t i = segments[s].first; i < segments[s].end; ++i)
            if (ordered_.layers[i].name == layer && operation.phase != Phase::update)
              seconds[s] += operation.seconds / (runs - 1);
      }
    }
    if (communicator().rank() != 0) std::ranges::fill(seconds, 0);
    communicator().sum(std::span<double>(seconds));
    return seconds;
  }

  void take_weights() {
    if (!is_idle()) take_slices(slices_, whole_, stage_network());
  }

  void broadcast_stage(int s, std::span<float> whole) {
    const Segment& layers = layers_[static_cast<std::size_t>(s)];
    for (const ParameterRange& range : whole_.parameter_list()) {
      const std::string layer = range.name.substr(0, range.name.rfind('.'));
      for (std::size_t i = layers.first; i < layers.end; ++i)
        if (ordered_.layers[i].name == layer)
          communicator().broadcast(s, whole.subspan(range.offset, range.count));
    }
  }

  double step(double rate) override {
    if (is_idle()) return 0;
    loss_ = 0;
    std::ranges::fill(sums_, 0.0F);
    const int ahead = is_1f1b_ ? std::min(stages_ - stage() - 1, micro_batches_) : micro_batches_;
    int forwards = 0, backwards = 0;
    while (forwards < ahead) forward(forwards++);
    while (backwards < micro_batches_) {
      if (forwards < micro_batches_) forward(forwards++);
      backward(backwards++);
    }
    compute(0, [&] {
      const std::span<float> gradients = stage_network().parts().gradients.host;
      set_to_quotient(gradients.first(sums_.size()), sums_, static_cast<float>(micro_batches_));
      stage_network().set_next_step(progress().step + 1);  // for Adam
      stage_network().update(rate);
    });
    return loss_;
  }

  void forward(int micro_batch) {
    Slot& slot = this->slot(micro_batch);
    TrainableNetwork& network = *slot.network;
    const int samples = static_cast<int>(network.batch());
    if (stage() > 0)
      blocked(
          [&] {
            slot.input_gradient.wait();
            communicator().start_receive(stage() - 1, network.images()).wait();
          },
          static_cast<double>(network.images().size_bytes()));
    blocked([&] { slot.output.wait(); });  // of the micro-batch before
    network.set_next_step(progress().step * micro_batches_ + micro_batch + 1);  // for dropout
    compute(samples, [&] {
      if (stage() == 0)
        batches_.draw(progress().step, micro_batch * samples, network.images(),
                      is_last() ? network.labels() : std::span<std::uint8_t>(labels_));
      else if (is_last())
        batches_.draw(progress().step, micro_batch * samples, images_, network.labels());
      loss_ += network.forward() / micro_batches_;
    });
    if (is_last()) return;
    const std::span<float> output = network.output();
    slot.output = communicator().start_send(stage() + 1, output);
    sent(static_cast<double>(output.size_bytes()));
  }

  void backward(int micro_batch) {
    Slot& slot = this->slot(micro_batch);
    TrainableNetwork& network = *slot.network;
    if (!is_last())
      blocked([&] { communicator().start_receive(stage() + 1, network.output_gradient()).wait(); },
              static_cast<double>(network.output_gradient().size_bytes()));
    compute(0, [&] {
      network.backward();
      const std::span<const float> gradients = network.parts().gradients.host;
      add_to(sums_, gradients.first(sums_.size()));
    });
    if (stage() == 0) return;
    slot.input_gradient = communicator().start_send(stage() - 1, network.input_gradient());
    sent(static_cast<double>(network.images().size_bytes()));
  }

  void progress_transfers() {
    for (Slot& slot : slots_) {
      slot.output.done();
      slot.input_gradient.done();
    }
  }

  int micro_batches_;
  bool is_1f1b_;
  network::NetworkDescription ordered_;  // of a micro-batch
  TrainableNetwork whole_;
  data::Batches batches_;
  int stages_ = 1;
  std::vector<std::size_t> first_ranges_;  // [stage], the first segment
  std::vector<Segment> layers_;            // [stage]
  std::vector<Slot> slots_;
  std::vector<ParameterSlice> slices_;
  std::vector<float> sums_;  // of the gradients
  std::vector<float> images_;
  std::vector<std::uint8_t> labels_;
  double loss_ = 0;
};

void forecast(Forecast& f) {
  const int count = micro_batches_of(f.mode, f.batch(), f.cluster.ranks);
  const bool backward_soon = is_1f1b(f.mode);
  const network::NetworkDescription ordered = network::pool_before_relu(f.network);
  const std::vector<Segment> segments = segments_of(ordered, false);
  const std::size_t stages = std::min(static_cast<std::size_t>(f.cluster.ranks), segments.size());
  const auto samples = f.batch() / count;
  const StepTimes& times = f.times.whole(samples, static_cast<int>(stages));
  std::vector<double> seconds;
  for (const Segment& segment : segments) {
    seconds.push_back(0);
    for (std::size_t i = segment.first; i < segment.end; ++i)
      seconds.back() += times.layers[i].forward + times.layers[i].backward;
  }
  const std::vector<std::size_t> firsts = balanced_stages(seconds, stages);
  std::vector<StageTimes> all;
  double work = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t first = segments[firsts[s]].first,
                      end = s + 1 < stages ? segments[firsts[s + 1]].first : ordered.layers.size();
    StageTimes stage;
    double parameters = 0;
    for (std::size_t i = first; i < end; ++i) {
      stage.forward += times.layers[i].forward;
      stage.backward += times.layers[i].backward;
      parameters += 4 * static_cast<double>(times.layers[i].parameters);
    }
    const auto bytes = [&](const network::Shape& shape) {
      return 4.0 * static_cast<double>(samples * shape.features());
    };
    const double received = bytes(ordered.layers[first].input),
                 returned = bytes(ordered.layers[end - 1].output);
    if (s == 0 || s + 1 == stages) stage.forward += times.draw;
    if (s > 0) stage.forward += f.hop(received);
    if (s + 1 < stages) stage.backward += f.hop(returned);
    if (s > 0) f.predicted.bytes += count * received / f.p();
    if (s + 1 < stages) f.predicted.bytes += count * returned / f.p();
    stage.backward += f.add(parameters);  // to the sum over the micro-batches
    stage.update = f.copy(parameters) + times.update_alone * parameters / f.n();
    work += count * (stage.forward + stage.backward) + stage.update;
    f.predicted.exposed +=
        count * ((s > 0 ? f.hop(received) : 0) + (s + 1 < stages ? f.hop(returned) : 0)) / f.p();
    all.push_back(stage);
  }
  double step = pipeline_seconds(all, count, backward_soon);
  if (f.one_host()) step = std::max(step, work / std::min(f.cores(), f.p()));
  f.predicted.compute = work / f.p() - f.predicted.exposed;
  f.predicted.waiting = step - f.predicted.compute - f.predicted.exposed;
}

const ModeRegistration registration(info, make_mode<Pipeline>, forecast);

}  // namespace
}  // namespace stepladder
