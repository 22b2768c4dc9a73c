// Stale synchronous parallel (Ho et al., More effective distributed ML via a stale synchronous
// parallel parameter server, 2013): rank 0 is the server. The other ranks count their steps. The
// server updates the weights when it has the gradients of one step from all of them, as synchronous
// SGD does, but a rank need not wait for that: it may be up to `bound` steps ahead of the updates.
// With bound = 0 this is synchronous SGD. A rank that falls behind delays the others only when it is
// `bound` steps behind; one that is always slow sets the pace.
#include <deque>
#include <vector>

#include "harness/training/modes/replica.hpp"

namespace stepladder {
namespace {

class Ssp final : public Mode {
 public:
  Ssp(const TrainingSetup& setup, const ModeSpec& spec)
      : Mode(setup, info.name),
        workers_(std::max(1, communicator().ranks() - 1)),
        replica_(setup, setup.use, std::max(0, communicator().rank() - 1), workers_,
                 {.exchange = Exchange::none, .shared_gradients = false}),
        bound_(spec.integer("bound")) {}

  TrainableNetwork& network() override { return replica_.network(); }
  void collect() override {
    communicator().broadcast(0, replica_.parameters());
    communicator().broadcast(0, network().state1());
    communicator().broadcast(0, network().state2());
  }

  static const ModeInfo info;

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
    // Of steps progress().step and following.
    std::deque<Sum> sums;
    std::vector<std::int64_t> wants(static_cast<std::size_t>(workers_) + 1, progress().step);
    std::vector<bool> waits(wants.size(), true);
    std::vector<float> received(replica_.gradients().size());
    double answered = 0;       // bytes
    const auto answer = [&] {  // those that wait and are not too far ahead
      answered = 0;
      for (int rank = 1; rank <= workers_; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (!waits[r] || wants[r] - progress().step > bound_) continue;
        waits[r] = false;
        answered += bytes();
        communicator().send(rank, progress().step);
        communicator().send(rank, std::span<const float>(replica_.parameters()));
        sent(static_cast<double>(replica_.parameters().size_bytes()));
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
      while (!sums.empty() && sums.front().ranks == workers_) {
        const double rate = learning_rate(progress().step), loss = sums.front().loss;
        compute(0, [&] {
          const auto gradients = replica_.gradients();
          for (std::size_t i = 0; i < gradients.size(); ++i)
            gradients[i] = sums.front().gradients[i] / static_cast<float>(workers_);
          replica_.update(rate);
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
    for (std::size_t i = 0; i < gradients.size(); ++i) sum.gradients[i] += gradients[i];
  }

  void work(std::int64_t last) {
    while (progress().step < last) {
      std::int64_t version = 0;
      blocked(
          [&] {
            version = communicator().receive<std::int64_t>(0);
            communicator().receive(0, replica_.parameters());
          },
          bytes());
      const std::int64_t step = progress().step;
      const Report report{step, version, gradient(step)};
      blocked(
          [&] {
            communicator().send(0, report);
            communicator().send(0, std::span<const float>(replica_.gradients()));
          },
          bytes());
      sent(static_cast<double>(replica_.gradients().size_bytes()));
      finished(report.loss, learning_rate(step));
    }
  }

  int workers_;
  Replica replica_;
  std::int64_t bound_;
};

const ModeInfo Ssp::info{
    .name = "ssp",
    .idea = "a rank may be a bounded number of steps ahead of the updates",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .divides_batches = true,
    .options = {{"bound", "2", "steps that a rank may be ahead; 0 is synchronous"}},
};

const ModeRegistration registration(Ssp::info, make_mode<Ssp>);

}  // namespace
}  // namespace stepladder
