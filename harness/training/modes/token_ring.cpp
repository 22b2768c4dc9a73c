// The weights go round. Every replica trains weights of its own; when the token with the weights of
// all comes by, it adds the change that it has made since the last time, goes on from the result,
// and hands the token to the next rank. No rank waits for a mean or for another rank: the time of a
// round decides how stale the weights are. Transfers make progress between the operations of a
// step.
#include "harness/training/forecast.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/weight_token.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "token_ring",
    .idea = "the weights go round; every rank adds its change and hands them on, none waits",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .divides_batches = false,
};

class TokenRing final : public Mode {
 public:
  TokenRing(const TrainingSetup& setup, const ModeSpec&)
      : Mode(setup, info.name),
        replica_(setup, setup.use, 0, 1, {.exchange = Exchange::none, .shared_gradients = false}),
        token_(communicator(), replica_.parameters().size()) {
    replica_.network().after_operations([this](const Operation&) { token_.poll(); });
  }

  TrainableNetwork& network() override { return replica_.network(); }
  void restart(const Progress& progress) override {
    Mode::restart(progress);
    own_batches_ = progress.step / communicator().ranks();
  }

 private:
  void train_to(std::int64_t last) override {
    const double bytes = token_.bytes_sent();
    token_.begin(replica_.parameters(), progress().step);
    std::int64_t own = 0;  // updates since the token was here
    double loss = 0, rate = 0;
    while (!token_.ended()) {
      rate = learning_rate(token_.updates());
      compute(replica_.samples(), [&] {
        replica_.draw(own_batches_++ * communicator().ranks() + communicator().rank());
        loss = replica_.gradient();
        replica_.update(rate);
      });
      ++own;
      if (!token_.arrived()) continue;
      compute(0, [&] {
        const std::int64_t missed = token_.exchange(replica_.parameters(), own, last);
        for (; own > 0; --own) stale(missed);
      });
      if (communicator().rank() == 0) finished(loss, rate, token_.updates() - progress().step);
    }
    std::int64_t all = 0;
    blocked([&] { all = token_.finish(replica_.parameters()); },
            static_cast<double>(replica_.parameters().size_bytes()));
    sent(token_.bytes_sent() - bytes);
    finished(loss, rate, all - progress().step);
  }

  Replica replica_;
  WeightToken token_;
  std::int64_t own_batches_ = 0;
};

void forecast(Forecast& f) {
  const double step = f.times.whole(f.batch(), f.cluster.ranks).free_step;
  f.predicted.compute = f.with_token(step, f.p(), f.n(), f.hop(f.n())) / f.p();
}

const ModeRegistration registration(info, make_mode<TokenRing>, forecast);

}  // namespace
}  // namespace stepladder
