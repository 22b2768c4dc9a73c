// Master-slave, synchronous: every rank sends the gradient of its part of the batch to the master,
// rank 0, which updates the weights and sends them back. The master computes too: otherwise it would
// be idle. It receives and sends (p-1) n bytes a step, which an all-reduce spreads over all ranks.
//
// With first=k the master goes on with the first k gradients, its own among them (Chen et al.,
// Revisiting distributed synchronous SGD, 2016). A gradient that comes late is dropped; its rank gets
// the present weights.
#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "harness/training/modes/replica.hpp"

namespace stepladder {
namespace {

class ParameterServer final : public Mode {
 public:
  ParameterServer(const TrainingSetup& setup, const ModeSpec& spec)
      : Mode(setup, info.name),
        replica_(setup, setup.use, communicator().rank(), communicator().ranks(),
                 {.exchange = Exchange::none, .shared_gradients = false}),
        first_(static_cast<int>(spec.integer("first"))) {
    const int ranks = communicator().ranks();
    if (first_ > ranks)
      throw std::runtime_error(
          fmt::format("mode {}: expected at most the number of ranks, {}", spec.text(), ranks));
    if (first_ == 0) first_ = ranks;
    waits_for_all_ = first_ == ranks;
    received_.resize(replica_.gradients().size());
  }

  TrainableNetwork& network() override { return replica_.network(); }
  void collect() override {
    communicator().broadcast(0, network().state1());
    communicator().broadcast(0, network().state2());
  }

  static const ModeInfo info;

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

  double gradient(std::int64_t step) {
    double loss = 0;
    compute(replica_.samples(), [&] {
      replica_.draw(step);
      loss = replica_.gradient();
    });
    return loss;
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
          for (std::size_t i = 0; i < received_.size(); ++i)
            replica_.gradients()[i] += received_[i];
          loss += report.loss;
          in_time.push_back(from);
        }
      };
      const double bytes = static_cast<double>(replica_.gradients().size_bytes());
      blocked(gather, bytes * (first_ - 1));
      const auto parts = static_cast<float>(in_time.size() + 1);
      const double rate = learning_rate(step);
      compute(0, [&] {
        for (float& g : replica_.gradients()) g /= parts;
        replica_.update(rate);
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
          bytes * static_cast<double>(in_time.size()));
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
      const double bytes = static_cast<double>(replica_.gradients().size_bytes());
      std::int64_t next = 0;
      blocked(
          [&] {
            communicator().send(0, report);
            communicator().send(0, std::span<const float>(replica_.gradients()));
            next = communicator().receive<std::int64_t>(0);
          },
          bytes);
      blocked([&] { communicator().receive(0, replica_.parameters()); }, bytes);
      sent(bytes);
      finished(report.loss, learning_rate(step), next - step);
      if (first_ == communicator().ranks()) check_ranks(progress().step);
    }
  }

  Report receive_gradient(int from) {
    const auto report = communicator().receive<Report>(from);
    communicator().receive(from, std::span<float>(received_));
    return report;
  }

  // For step number `next`.
  void send_weights(int rank, std::int64_t next) {
    communicator().send(rank, next);
    communicator().send(rank, std::span<const float>(replica_.parameters()));
    sent(static_cast<double>(replica_.parameters().size_bytes()));
  }

  Replica replica_;
  int first_;
  std::vector<float> received_;  // a gradient
};

const ModeInfo ParameterServer::info{
    .name = "parameter_server",
    .idea = "a master adds the gradients of all ranks, updates the weights and sends them back",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = true,
    .divides_batches = true,
    .options = {{"first", "0", "go on with the first so many gradients; 0: with all"}},
};

const ModeRegistration registration(ParameterServer::info, make_mode<ParameterServer>);

}  // namespace
}  // namespace stepladder
