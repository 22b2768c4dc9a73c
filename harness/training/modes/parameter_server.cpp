// Master-slave, synchronous: every rank sends the gradient of its part of the batch to the master,
// rank 0, which updates the weights and sends them back. The master computes too: otherwise it
// would be idle. It receives and sends (p-1) n bytes a step, which an all-reduce spreads over all
// ranks.
//
// With first=k the master goes on with the first k gradients, its own among them (Chen et al.,
// Revisiting distributed synchronous SGD, 2016). A gradient that comes late is dropped; its rank
// gets the present weights.
#include <fmt/format.h>

#include <vector>

#include "harness/training/arithmetic.hpp"
#include "harness/training/forecast.hpp"
#include "harness/training/modes/server_mode.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "parameter_server",
    .idea = "a master adds the gradients of all ranks, updates the weights and sends them back",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = true,
    .divides_batches = true,
    .options = {{"first", "0", "go on with the first so many gradients; 0: with all"}},
};

// The gradients to go on with. Throws CannotRun.
int first_of(const ModeSpec& spec, int ranks) {
  const auto first = static_cast<int>(spec.integer("first"));
  if (first > ranks)
    throw CannotRun(
        fmt::format("first={}: expected at most the number of ranks, {}", first, ranks));
  return first == 0 ? ranks : first;
}

class ParameterServer final : public ServerMode {
 public:
  ParameterServer(const TrainingSetup& setup, const ModeSpec& spec)
      : ServerMode(setup, info.name, Batch::of_all),
        first_(first_of(spec, communicator().ranks())) {
    waits_for_all_ = first_ == communicator().ranks();
    received_.resize(replica().gradients().size());
  }

 private:
  // A rank sends it before its gradient.
  struct Report {
    std::int64_t step;
    double loss;  // contribution to that of the batch
  };

  void train_to(std::int64_t last) override {
    if (communicator().rank() == 0)
      serve(last);
    else
      work(last);
  }

  void serve(std::int64_t last) {
    const int ranks = communicator().ranks();
    std::vector<bool> computes(static_cast<std::size_t>(ranks), true);  // and will send a gradient
    computes[0] = false;
    while (progress().step < last) {
      const std::int64_t step = progress().step;
      double loss = gradient(step);
      std::vector<int> in_time;
      const auto gather = [&] {
        for (int next = 1; static_cast<int>(in_time.size()) + 1 < first_; ++next) {
          const int from = first_ == ranks ? next : communicator().await_message();
          const Report report = receive_gradient(from);
          if (report.step < step) {
            send_weights(from, step);
            continue;
          }
          add_to(replica().gradients(), received_);
          loss += report.loss;
          in_time.push_back(from);
        }
      };
      blocked(gather, bytes() * (first_ - 1));
      const auto parts = static_cast<float>(in_time.size() + 1);
      const double rate = learning_rate(step);
      compute(0, [&] {
        divide(replica().gradients(), parts);
        replica().update(rate);
      });
      finished(loss * ranks / double{parts}, rate, 1,
               batch() * static_cast<std::int64_t>(in_time.size() + 1) / ranks);
      blocked(
          [&] {
            for (const int rank : in_time) {
              send_weights(rank, step + 1);
              computes[static_cast<std::size_t>(rank)] = step + 1 < last;
            }
          },
          bytes() * static_cast<double>(in_time.size()));
      if (first_ == ranks) check_ranks(progress().step);
    }
    for (int rank = 1; rank < ranks; ++rank)
      if (computes[static_cast<std::size_t>(rank)]) {
        receive_gradient(rank);
        send_weights(rank, last);
      }
  }

  void work(std::int64_t last) {
    while (progress().step < last) {
      const std::int64_t step = progress().step;
      const Report report{step, gradient(step)};
      std::int64_t next = 0;
      blocked(
          [&] {
            send_gradients(report);
            next = communicator().receive<std::int64_t>(0);
          },
          bytes());
      blocked([&] { communicator().receive(0, replica().parameters()); }, bytes());
      finished(report.loss, learning_rate(step), next - step);
      if (first_ == communicator().ranks()) check_ranks(progress().step);
    }
  }

  Report receive_gradient(int from) {
    const auto report = communicator().receive<Report>(from);
    communicator().receive(from, std::span<float>(received_));
    return report;
  }

  int first_;
  std::vector<float> received_;  // a gradient
};

void forecast(Forecast& f) {
  const int first = first_of(f.mode, f.cluster.ranks);
  const StepTimes& times = f.times.whole(f.part(f.cluster.ranks), f.cluster.ranks);
  f.compute_parts((f.copy(f.n()) + times.update_alone) / f.p());
  if (f.cluster.ranks == 1) return;
  const double share = (first - 1) / (f.p() - 1);
  f.predicted.exposed = share * (2 * f.to_all(f.n()) + (f.p() - 1) * f.add(f.n()));
  f.predicted.waiting +=
      (f.copy(f.n()) + times.update_alone) * (f.p() - 1) / f.p();  // for the master
  f.predicted.bytes = 2 * share * (f.p() - 1) / f.p() * f.n();
}

const ModeRegistration registration(info, make_mode<ParameterServer>, forecast);

}  // namespace
}  // namespace stepladder
