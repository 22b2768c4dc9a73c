// Downpour SGD (Dean et al., Large scale distributed deep networks, 2012; Gorila: Nair et al.,
// 2015): rank 0 is the server. The other ranks compute gradients of whole batches; the server
// applies each as it comes and answers at once with the present weights. No rank waits for another.
// The price is staleness: between reading the weights and the update, the gradients of other ranks
// were applied.
#include <vector>

#include "harness/training/forecast.hpp"
#include "harness/training/modes/server_mode.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "downpour",
    .idea =
        "a server applies each rank's gradient as it comes and answers at once with the weights",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .divides_batches = false,
};

class Downpour final : public ServerMode {
 public:
  Downpour(const TrainingSetup& setup, const ModeSpec&)
      : ServerMode(setup, info.name, Batch::whole) {}

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

  void serve(std::int64_t last) {
    std::int64_t next = progress().step;  // batch
    int working = 0;
    const auto give_task = [&](int rank) {
      const Task task{progress().step, next < last ? next++ : none};
      if (task.batch == none) return communicator().send(rank, task);
      ++working;
      send_weights(rank, task);
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
            communicator().receive(from, replica().gradients());
          },
          bytes());
      --working;
      const double rate = learning_rate(progress().step);
      compute(0, [&] { replica().update(rate); });
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
            if (task.batch != none) communicator().receive(0, replica().parameters());
          },
          bytes());
      if (task.batch == none) return;
      const Report report{task.version, gradient(task.batch)};
      blocked([&] { send_gradients(report); }, bytes());
    }
  }
};

// A worker's update takes its gradient, two messages and the server's part; the server is busy with
// the latter two. The server and the workers take turns where cores are few.
void forecast(Forecast& f) {
  if (f.cluster.ranks == 1) return f.one_replica();
  const int workers = f.cluster.ranks - 1;
  const StepTimes& times = f.times.whole(f.batch(), workers);
  const double gradient = times.free_step - times.update, server = times.update_alone,
               messages = 2 * f.to_all(f.n()) / workers;
  double seconds = std::max((gradient + messages + server) / workers, messages + server);
  if (f.one_host())
    seconds =
        std::max(seconds, (gradient / std::max(1.0, workers / f.cores()) + messages + server) /
                              std::min(f.cores(), f.p()));
  f.predicted.compute = std::min((gradient + server) / f.p(), seconds);
  f.predicted.exposed = std::min(2 * messages / f.p(), seconds - f.predicted.compute);
  f.predicted.waiting = seconds - f.predicted.compute - f.predicted.exposed;
  f.predicted.bytes = 2 * f.n() / f.p();
}

const ModeRegistration registration(info, make_mode<Downpour>, forecast);

}  // namespace
}  // namespace stepladder
