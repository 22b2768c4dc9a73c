// Data parallel with a sharded update (ZeRO stage 1: Rajbhandari et al., 2020): a reduce-scatter
// leaves each rank with the mean gradient of one shard, the rank updates that shard alone, and an
// all-gather distributes the weights. As many bytes as an all-reduce, 1/p of the update and of the
// optimizer's state per rank. The rung is sharded_update of sgd_update.
#include "harness/training/forecast.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/synchronous_mode.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "sharded",
    .idea =
        "reduce-scatter of the gradients, update of one shard per rank, all-gather of the weights",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = true,
    .divides_batches = true,
};

class Sharded final : public SynchronousMode {
 public:
  Sharded(const TrainingSetup& setup, const ModeSpec&)
      : SynchronousMode(setup, info.name),
        replica_(
            setup,
            communicator().ranks() > 1 ? setup.use.with("sgd_update", "sharded_update") : setup.use,
            communicator().rank(), communicator().ranks(),
            {.exchange = Exchange::update, .shared_gradients = false}) {}

  TrainableNetwork& network() override { return replica_.network(); }

  // Rank r has the state of chunk r + 1 of each array that is updated by itself.
  void collect() override {
    const int ranks = communicator().ranks();
    if (ranks == 1) return;
    for (const std::span<float> state : {network().state1(), network().state2()})
      for (const auto& [from, to] : network().parts().updates) {
        const all_reduce::Chunk whole{static_cast<std::int64_t>(from),
                                      static_cast<std::int64_t>(to - from)};
        std::vector<Communicator::Part> parts;
        for (int rank = 0; rank < ranks; ++rank) {
          const all_reduce::Chunk chunk = all_reduce::chunk_of(whole, ranks, rank + 1);
          parts.push_back({chunk.first, chunk.count});
        }
        communicator().gather(state, parts);
      }
  }

 private:
  double step(double rate) override {
    double loss = 0;
    compute(replica_.samples(), [&] {
      replica_.draw(progress().step);
      loss = replica_.gradient();
    });
    if (communicator().ranks() == 1) {
      compute(0, [&] { replica_.update(rate); });
      return loss;
    }
    blocked([&] { replica_.update(rate); });
    const double ranks = communicator().ranks();
    sent(2 * (ranks - 1) / ranks * static_cast<double>(replica_.gradients().size_bytes()));
    return loss;
  }

  Replica replica_;
};

void forecast(Forecast& f) {
  if (f.cluster.ranks == 1) return f.compute_parts(f.update_of_all());
  const detail::Entry* rung = nullptr;
  for (const detail::Entry& entry : detail::entries(sgd_update::SgdUpdate::name))
    if (entry.cost != nullptr && std::string(entry.info->name) == "sharded_update") rung = &entry;
  if (rung == nullptr) throw CannotRun("sharded_update was not built");
  // The cost function updates as fast as it adds; here the update is measured.
  for (const double bytes : f.times.whole(f.part(f.cluster.ranks), f.cluster.ranks).updated)
    f.predicted.exposed += rung->cost(f.cost(bytes)) - f.add(bytes / f.p());
  f.compute_parts(f.update_of_all() / f.p());
  f.predicted.bytes = 2 * (f.p() - 1) / f.p() * f.n();
}

const ModeRegistration registration(info, make_mode<Sharded>, forecast);

}  // namespace
}  // namespace stepladder
