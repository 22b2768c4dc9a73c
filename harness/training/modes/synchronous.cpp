// Data parallel: every rank computes the gradient of its part of the batch, an all-reduce gives all
// of them the mean, and all make the same update. The weights stay identical bit for bit.
//
// With overlap a thread reduces the gradients of a layer while backward() computes those of the
// layers before it (Li et al., PyTorch Distributed, 2020). This hides the messages where the thread
// finds an idle core, or waits for a network.
#include <algorithm>
#include <exception>

#include "harness/training/forecast.hpp"
#include "harness/training/modes/exchange.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/synchronous_mode.hpp"

namespace stepladder {
namespace {

UseSpec use_of(const TrainingSetup& setup, const ModeSpec& spec) {
  const std::string& rung = spec.value("compressed");
  return rung.empty() ? setup.use : setup.use.with("all_reduce", rung);
}

const ModeInfo info{
    .name = "synchronous",
    .idea = "every rank computes the gradient of a part of the batch; an all-reduce gives the mean",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = true,
    .divides_batches = true,
    .options = {{"overlap", "no", "yes: all-reduce of a layer during the backward pass of others"},
                {"bucket_kib", "1024", "with overlap: KiB of gradients in an all-reduce, at least"},
                {"compressed", "", "rung of all_reduce that compresses, with error feedback"}},
};

class Synchronous final : public SynchronousMode {
 public:
  Synchronous(const TrainingSetup& setup, const ModeSpec& spec)
      : SynchronousMode(setup, info.name),
        overlaps_(spec.flag("overlap") && communicator().ranks() > 1),
        replica_(setup, setup.use, communicator().rank(), communicator().ranks(),
                 {.exchange = Exchange::none}),
        exchange_(setup, use_of(setup, spec), replica_.network(),
                  overlaps_ ? static_cast<std::size_t>(spec.integer("bucket_kib", 1)) * 1024 : 0) {}

  TrainableNetwork& network() override { return replica_.network(); }
  std::string all_reduce() const override { return exchange_.variant(); }

 private:
  double step(double rate) override {
    double loss = 0;
    compute(replica_.samples(), [&] {
      replica_.draw(progress().step);
      loss = overlaps_ ? gradient_and_exchange() : replica_.gradient();
    });
    double exposed = training_clock();
    blocked([&] { overlaps_ ? exchange_.end() : exchange_.run(); });
    exposed = training_clock() - exposed;
    if (overlaps_) hidden(std::max(0.0, exchange_.seconds() - exposed));
    sent(exchange_.bytes());
    compute(0, [&] { replica_.update(rate); });
    return loss;
  }

  // The thread may wait for other ranks: an error must end the run at once.
  double gradient_and_exchange() try {
    begin_exchange();
    const double loss = replica_.gradient();
    replica_.network().after_operations({});
    return loss;
  } catch (const std::exception& error) {
    mpi_session().abort(error.what());
  }

  void begin_exchange() {
    exchange_.begin();
    // Parts of unequal size are scaled after backward().
    if (replica_.samples() * std::int64_t{communicator().ranks()} == batch())
      replica_.network().after_operations([this](const Operation& operation) {
        if (operation.phase == Phase::backward) exchange_.after(operation);
      });
  }

  bool overlaps_;
  Replica replica_;
  GradientExchange exchange_;
};

// A bucket is reduced when the one before it is, and when the gradients of its layers are there.
// On one host this takes a core that no rank computes on; else nothing is hidden.
double exposed_of_buckets(const Forecast& f, const UseSpec& use, double least) {
  const StepTimes& times = f.times.whole(f.part(f.cluster.ranks), f.cluster.ranks);
  const bool hides = !f.one_host() || f.of_host() < f.cores();
  double computed = 0, reduced = 0, bytes = 0;
  for (auto layer = times.layers.rbegin(); layer != times.layers.rend(); ++layer) {
    computed += layer->backward;
    bytes += 4 * static_cast<double>(layer->parameters);
    const bool is_last = layer + 1 == times.layers.rend();
    if (bytes == 0 || (bytes < least && !is_last)) continue;
    reduced = (hides ? std::max(reduced, computed) : reduced) + f.all_reduce(use, bytes).seconds;
    bytes = 0;
  }
  return hides ? std::max(0.0, reduced - computed) : reduced;
}

void forecast(Forecast& f) {
  const std::string& rung = f.mode.value("compressed");
  const UseSpec use = rung.empty() ? f.use : f.use.with("all_reduce", rung);
  const Forecast::Reduction reduction = f.all_reduce(use, f.n());
  f.predicted.all_reduce = reduction.rung;
  f.predicted.bytes = reduction.bytes;
  f.predicted.exposed = reduction.seconds;
  f.compute_parts(f.update_of_all());
  if (f.mode.flag("overlap") && f.cluster.ranks > 1)
    f.predicted.exposed =
        exposed_of_buckets(f, use, 1024.0 * static_cast<double>(f.mode.integer("bucket_kib", 1)));
}

const ModeRegistration registration(info, make_mode<Synchronous>, forecast);

}  // namespace
}  // namespace stepladder
