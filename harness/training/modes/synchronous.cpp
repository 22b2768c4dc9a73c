// Data parallel: every rank computes the gradient of its part of the batch, an all-reduce gives all
// of them the mean, and all make the same update. The weights stay identical bit for bit.
//
// With overlap a thread reduces the gradients of a layer while backward() computes those of the
// layers before it (Li et al., PyTorch Distributed, 2020). This hides the messages where the thread
// finds an idle core, or waits for a network.
#include <algorithm>
#include <exception>

#include "harness/training/modes/exchange.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/synchronous_mode.hpp"

namespace stepladder {
namespace {

UseSpec use_of(const TrainingSetup& setup, const ModeSpec& spec) {
  const std::string& rung = spec.value("compressed");
  return rung.empty() ? setup.use : setup.use.with("all_reduce", rung);
}

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

  static const ModeInfo info;

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

const ModeInfo Synchronous::info{
    .name = "synchronous",
    .idea = "every rank computes the gradient of a part of the batch; an all-reduce gives the mean",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = true,
    .divides_batches = true,
    .options = {{"overlap", "no", "yes: all-reduce of a layer during the backward pass of others"},
                {"bucket_kib", "1024", "with overlap: KiB of gradients in an all-reduce, at least"},
                {"compressed", "", "rung of all_reduce that compresses, with error feedback"}},
};

const ModeRegistration registration(Synchronous::info, make_mode<Synchronous>);

}  // namespace
}  // namespace stepladder
