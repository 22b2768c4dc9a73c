// Stale synchronous parallel (Ho et al., More effective distributed ML via a stale synchronous
// parallel parameter server, 2013): rank 0 is the server. The other ranks count their steps. The
// server updates the weights when it has the gradients of one step from all of them, as synchronous
// SGD does, but a rank need not wait for that: it may be up to `bound` steps ahead of the updates.
// With bound = 0 this is synchronous SGD. A rank that falls behind delays the others only when it
// is `bound` steps behind; one that is always slow sets the pace.
#include <deque>
#include <vector>

#include "harness/training/arithmetic.hpp"
#include "harness/training/forecast.hpp"
#include "harness/training/modes/server_mode.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "ssp",
    .idea = "a rank may be a bounded number of steps ahead of the updates",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .divides_batches = true,
    .options = {{"bound", "2", "steps that a rank may be ahead; 0 is synchronous"}},
};

class Ssp final : public ServerMode {
 public:
  Ssp(const TrainingSetup& setup, const ModeSpec& spec)
      : ServerMode(setup, info.name, Batch::of_workers), bound_(spec.integer("bound")) {}

 private:
  struct Report {
    std::int64_t step, version;  // of the gradient; updates in the weights it was computed with
    double loss;
  };
  // The gradients of one step, so far.
  struct Sum {
    std::vector<float> gradients;
    double loss = 0;
    int ranks = 0;
  };

  void train_to(std::int64_t last) override {
    if (communicator().ranks() == 1)
      alone(last);
    else if (communicator().rank() == 0)
      serve(last);
    else
      work(last);
  }

  void serve(std::int64_t last) {
    // Of steps progress().step and following.
    std::deque<Sum> sums;
    std::vector<std::int64_t> wants(static_cast<std::size_t>(workers()) + 1, progress().step);
    std::vector<bool> waits(wants.size(), true);
    std::vector<float> received(replica().gradients().size());
    double answered = 0;       // bytes
    const auto answer = [&] {  // those that wait and are not too far ahead
      answered = 0;
      for (int rank = 1; rank <= workers(); ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (!waits[r] || wants[r] - progress().step > bound_) continue;
        waits[r] = false;
        answered += bytes();
        send_weights(rank, progress().step);
      }
    };
    blocked(answer, answered);
    while (progress().step < last) {
      int from = 0;
      Report report{};
      blocked(
          [&] {
            from = communicator().await_message();
            report = communicator().receive<Report>(from);
            communicator().receive(from, std::span<float>(received));
          },
          bytes());
      stale(report.step - report.version);
      const auto at = static_cast<std::size_t>(report.step - progress().step);
      if (at >= sums.size()) sums.resize(at + 1);
      compute(0, [&] { add(sums[at], received, report.loss); });
      wants[static_cast<std::size_t>(from)] = report.step + 1;
      waits[static_cast<std::size_t>(from)] = report.step + 1 < last;
      while (!sums.empty() && sums.front().ranks == workers()) {
        const double rate = learning_rate(progress().step), loss = sums.front().loss;
        compute(0, [&] {
          set_to_quotient(replica().gradients(), sums.front().gradients,
                          static_cast<float>(workers()));
          replica().update(rate);
        });
        sums.pop_front();
        finished(loss, rate);
      }
      blocked(answer, answered);
    }
  }

  static void add(Sum& sum, const std::vector<float>& gradients, double loss) {
    sum.loss += loss;
    if (++sum.ranks == 1) {
      sum.gradients = gradients;
      return;
    }
    add_to(sum.gradients, gradients);
  }

  void work(std::int64_t last) {
    while (progress().step < last) {
      std::int64_t version = 0;
      blocked(
          [&] {
            version = communicator().receive<std::int64_t>(0);
            communicator().receive(0, replica().parameters());
          },
          bytes());
      const std::int64_t step = progress().step;
      const Report report{step, version, gradient(step)};
      blocked([&] { send_gradients(report); }, bytes());
      finished(report.loss, learning_rate(step));
    }
  }

  std::int64_t bound_;
};

// An update needs a gradient of every worker. A worker that is ahead gets the weights at once,
// the last one after the update.
void forecast(Forecast& f) {
  if (f.cluster.ranks == 1) return f.one_replica();
  const int workers = f.cluster.ranks - 1;
  const StepTimes& times = f.times.whole(f.part(workers), workers);
  const double gradient = times.free_step - times.update, messages = f.to_all(f.n()),
               server = f.copy(f.n()) + times.update_alone, of_worker = 2 * messages / workers,
               busy = 2 * messages + workers * f.add(f.n()) + server;
  double seconds = f.mode.integer("bound") == 0
                       ? times.slowest_gradient + busy
                       : std::max(gradient + of_worker + f.add(f.n()) + server, busy);
  if (f.one_host())
    seconds = std::max(seconds, (workers * gradient / std::max(1.0, workers / f.cores()) + busy) /
                                    std::min(f.cores(), f.p()));
  f.predicted.compute = std::min((workers * (gradient + f.add(f.n())) + server) / f.p(), seconds);
  f.predicted.exposed = std::min(4 * messages / f.p(), seconds - f.predicted.compute);
  f.predicted.waiting = seconds - f.predicted.compute - f.predicted.exposed;
  f.predicted.bytes = 2 * workers * f.n() / f.p();
}

const ModeRegistration registration(info, make_mode<Ssp>, forecast);

}  // namespace
}  // namespace stepladder
