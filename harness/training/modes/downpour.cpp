// Downpour SGD (Dean et al., Large scale distributed deep networks, 2012; Gorila: Nair et al., 2015):
// rank 0 is the server. The other ranks compute gradients of whole batches; the server applies each
// as it comes and answers at once with the present weights. No rank waits for another. The price is
// staleness: between reading the weights and the update, the gradients of other ranks were applied.
#include <vector>

#include "harness/training/modes/replica.hpp"

namespace stepladder {
namespace {

class Downpour final : public Mode {
 public:
  Downpour(const TrainingSetup& setup, const ModeSpec&)
      : Mode(setup, info.name),
        replica_(setup, setup.use, 0, 1, {.exchange = Exchange::none, .shared_gradients = false}) {}

  TrainableNetwork& network() override { return replica_.network(); }
  void collect() override {
    communicator().broadcast(0, replica_.parameters());
    communicator().broadcast(0, network().state1());
    communicator().broadcast(0, network().state2());
  }

  static const ModeInfo info;

 private:
  // The server sends it before the weights.
  struct Task {
    std::int64_t version;  // updates in these weights
    std::int64_t batch;    // to compute the gradient of; none: train_to() ends
  };
  // A rank sends it before a gradient.
  struct Report {
    std::int64_t version;  // of the weights that it was computed with
    double loss;
  };
  static constexpr std::int64_t none = -1;

  void train_to(std::int64_t last) override {
    if (communicator().ranks() == 1)
      alone(last);
    else if (communicator().rank() == 0)
      serve(last);
    else
      work();
    // All ranks know what the server knows.
    double step = static_cast<double>(progress().step);
    step = communicator().maximum(step);
    if (communicator().rank() != 0) progress_of_mode().step = static_cast<std::int64_t>(step);
  }

  double gradient(std::int64_t number) {
    double loss = 0;
    compute(replica_.samples(), [&] {
      replica_.draw(number);
      loss = replica_.gradient();
    });
    return loss;
  }

  double bytes() { return static_cast<double>(replica_.gradients().size_bytes()); }

  void alone(std::int64_t last) {
    while (progress().step < last) {
      const double loss = gradient(progress().step), rate = learning_rate(progress().step);
      compute(0, [&] { replica_.update(rate); });
      stale(0);
      finished(loss, rate);
    }
  }

  void serve(std::int64_t last) {
    std::int64_t next = progress().step;  // batch
    int working = 0;
    const auto give_task = [&](int rank) {
      const Task task{progress().step, next < last ? next++ : none};
      communicator().send(rank, task);
      if (task.batch == none) return;
      ++working;
      communicator().send(rank, std::span<const float>(replica_.parameters()));
      sent(static_cast<double>(replica_.parameters().size_bytes()));
    };
    blocked([&] {
      for (int rank = 1; rank < communicator().ranks(); ++rank) give_task(rank);
    });
    while (working > 0) {
      int from = 0;
      Report report{};
      blocked(
          [&] {
            from = communicator().await_message();
            report = communicator().receive<Report>(from);
            communicator().receive(from, replica_.gradients());
          },
          bytes());
      --working;
      const double rate = learning_rate(progress().step);
      compute(0, [&] { replica_.update(rate); });
      stale(progress().step - report.version);
      finished(report.loss, rate);
      const bool is_last = next >= last;
      blocked([&] { give_task(from); }, is_last ? 0 : bytes());
    }
  }

  void work() {
    for (;;) {
      Task task{};
      blocked(
          [&] {
            task = communicator().receive<Task>(0);
            if (task.batch != none) communicator().receive(0, replica_.parameters());
          },
          bytes());
      if (task.batch == none) return;
      const Report report{task.version, gradient(task.batch)};
      blocked(
          [&] {
            communicator().send(0, report);
            communicator().send(0, std::span<const float>(replica_.gradients()));
          },
          bytes());
      sent(static_cast<double>(replica_.gradients().size_bytes()));
    }
  }

  Replica replica_;
};

const ModeInfo Downpour::info{
    .name = "downpour",
    .idea =
        "a server applies each rank's gradient as it comes and answers at once with the weights",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .divides_batches = false,
    .options = {},
};

const ModeRegistration registration(Downpour::info, make_mode<Downpour>);

}  // namespace
}  // namespace stepladder
