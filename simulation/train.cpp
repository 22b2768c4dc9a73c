// stepladder_smpi_train: the modes of training on ranks that SimGrid simulates, one on each host.
// Written for scripts/simulate_training.py, which also runs it:
//
//     info NAME=VALUE…               what a training would use: "parameters=… images=… data=…
//     columns=…"
//     PLATFORM RANKS NAME=VALUE…     one training; see Options
//
// Gradients, updates and the loss are computed; the time of the computing is injected. Rank 0
// prints "row", "staleness" and a line of that file, and at the end "ok" with exact figures; or
// "failed: REASON". All ranks share one process and take turns in one thread.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <simgrid/s4u/Actor.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/data/network_data.hpp"
#include "harness/io/csv.hpp"
#include "harness/io/file.hpp"
#include "harness/io/hash.hpp"
#include "harness/io/json_text.hpp"
#include "harness/network/load.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/training/mode.hpp"
#include "harness/training/train_row.hpp"
#include "harness/training/trainer.hpp"
#include "simulation/calls.hpp"

namespace stepladder::simulation {
namespace {

struct Options {
  std::string network, mode, use, data;
  std::int64_t batch = 0;      // of an update; 0: the network's own
  std::int64_t steps = 1;      // updates
  std::int64_t log_every = 1;  // updates between two rows
  std::int64_t evaluate = 0;   // 1: the accuracy on the held-out images, in each row
  std::int64_t seed = 1, shift = 2;
  double scale = 1;          // of the learning rate
  std::int64_t warm_up = 0;  // samples
  double seconds = 0;        // of forward and backward of a batch
  double pass = 0;           // seconds of a pass over the weights
  std::int64_t slow_rank = -1, slow_from = 0, slow_to = std::numeric_limits<std::int64_t>::max();
  double slow_factor = 1;
  std::int64_t verify = 1;  // rungs, and after each step that synchronous ranks have equal weights
};

template <class Number>
void read(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("expected a number");
}
void read(const std::string& text, std::string& value) { value = text; }

Options options_from(const std::vector<std::string>& words) {
  Options o;
  using Reader = std::function<void(const std::string&)>;
  const auto into = [](auto& value) -> Reader {
    return [&value](const std::string& text) { read(text, value); };
  };
  const std::map<std::string, Reader> readers = {{"network", into(o.network)},
                                                 {"mode", into(o.mode)},
                                                 {"use", into(o.use)},
                                                 {"data", into(o.data)},
                                                 {"batch", into(o.batch)},
                                                 {"steps", into(o.steps)},
                                                 {"log_every", into(o.log_every)},
                                                 {"evaluate", into(o.evaluate)},
                                                 {"seed", into(o.seed)},
                                                 {"shift", into(o.shift)},
                                                 {"scale", into(o.scale)},
                                                 {"warm_up", into(o.warm_up)},
                                                 {"seconds", into(o.seconds)},
                                                 {"pass", into(o.pass)},
                                                 {"slow_rank", into(o.slow_rank)},
                                                 {"slow_factor", into(o.slow_factor)},
                                                 {"slow_from", into(o.slow_from)},
                                                 {"slow_to", into(o.slow_to)},
                                                 {"verify", into(o.verify)}};
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const auto reader = readers.find(word.substr(0, equals));
    if (equals == std::string::npos || reader == readers.end())
      throw std::invalid_argument(fmt::format("{}: no such option", word));
    try {
      reader->second(word.substr(equals + 1));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", word, error.what()));
    }
  }
  if (o.steps < 1 || o.log_every < 1) throw std::invalid_argument("expected one step at least");
  return o;
}

// What all ranks share.
struct Training {
  Options options;
  network::NetworkDescription description;
  data::DatasetPair data;
  ModeSpec mode;
  UseSpec use;

  explicit Training(const Options& o)
      : options(o),
        description(network::load_network(o.network, source_directory() / "bench/networks.json")),
        mode(o.mode),
        use(o.use) {
    const ModeInfo& info = mode_named(mode.name()).info;
    if (info.replicas == ModeInfo::Replicas::threads)
      throw std::invalid_argument(
          fmt::format("mode {}: the simulation has no threads", mode.text()));
    for (const ModeOption& option : info.options)
      if (option.name == std::string("overlap") && mode.flag("overlap"))
        throw std::invalid_argument(fmt::format(
            "mode {}: the thread that overlaps messages cannot be simulated", mode.text()));
    if (o.batch > 0) description.batch = o.batch;
    data = data::data_for(description, o.data, static_cast<std::uint64_t>(o.seed));
    if (data.train.count() < description.batch)
      throw std::invalid_argument(fmt::format("{} images are too few for a batch of {}",
                                              data.train.count(), description.batch));
  }
};

class Rank {
 public:
  explicit Rank(const Training& training)
      : t_(training),
        o_(training.options),
        plans_(static_cast<std::uint64_t>(o_.seed), {}, o_.verify != 0),
        mode_(mode_named(t_.mode.name()).make(setup(), t_.mode)),
        id_{.network = t_.description.name,
            .use = t_.use.text(),
            .mode = t_.mode.text(),
            .threads = 1,
            .ranks = mode_->replicas(),
            .hosts = mpi_session().hosts(),
            .device = "cpu",
            .seed = static_cast<std::uint64_t>(o_.seed),
            .batch = t_.description.batch,
            .optimizer = sgd_update::name_of(t_.description.optimizer.type)} {}

  // Evaluations take no simulated time. Asynchronous ranks go on meanwhile; the weights are those
  // of rank 0, the server if there is one. Others stop, which costs them nothing.
  void run() {
    const bool stops = mode_named(t_.mode.name()).info.synchronous;
    mode_->on_step([this, stops](const Progress& p) {
      if (!stops && p.step < o_.steps) print_row(p, accuracy(), false);
    });
    MPI_Barrier(MPI_COMM_WORLD);
    while (mode_->progress().step < o_.steps) {
      const std::int64_t step = mode_->progress().step;
      mode_->train(stops ? std::min(o_.steps, (step / o_.log_every + 1) * o_.log_every) : o_.steps);
      const Progress total = mode_->total();
      mode_->collect();
      if (mpi_session().rank() == 0) print_row(total, accuracy(), true);
    }
    print_end(mode_->total());
  }

 private:
  TrainingSetup setup() {
    return {.description = t_.description,
            .use = t_.use,
            .plans = &plans_,
            .data = &t_.data.train,
            .threads = 1,
            .replicas = mpi_session().ranks(),
            .shift = static_cast<int>(o_.shift),
            .seed = static_cast<std::uint64_t>(o_.seed),
            .scale = o_.scale,
            .warm_up = o_.warm_up,
            .log_every = o_.log_every,
            .check_ranks = o_.verify != 0 && mode_named(t_.mode.name()).info.synchronous,
            .slow = {static_cast<int>(o_.slow_rank), o_.slow_factor, o_.slow_from, o_.slow_to},
            .simulated_seconds = o_.seconds,
            .simulated_pass = o_.pass};
  }

  std::optional<double> accuracy() const {
    if (o_.evaluate == 0) return std::nullopt;
    return accuracy_on(mode_->network(), t_.data.test);
  }

  void print_row(const Progress& p, std::optional<double> accuracy, bool of_all_ranks) const {
    const std::int64_t per_epoch = t_.data.train.count() / t_.description.batch;
    const TrainRow row = train_row(id_, mode_->all_reduce(), p, per_epoch, accuracy, of_all_ranks);
    fmt::print("row {}", csv_line(train_columns().line(row)));
  }

  void print_end(const Progress& total) const {
    if (mpi_session().rank() != 0) return;
    for (std::size_t s = 0; s < total.staleness.size(); ++s)
      if (total.staleness[s] > 0)
        fmt::print("staleness {}", csv_line(staleness_columns().line(
                                       {id_, static_cast<std::int64_t>(s), total.staleness[s]})));
    fmt::print("ok seconds={:.17g} step={} samples={} loss={:.17g} weights={:016x} messages={}\n",
               total.seconds, total.step, total.samples, total.loss,
               fnv1a(std::as_bytes(std::span(mode_->network().parameters()))), messages_sent());
  }

  const Training& t_;
  const Options& o_;
  PlanStore plans_;
  std::unique_ptr<Mode> mode_;
  TrainingId id_;
};

[[noreturn]] void fail(const std::string& reason, int status) {
  fmt::print("failed: {}\n", reason);
  std::fflush(stdout);
  std::_Exit(status);  // the other ranks would wait for this one
}

void run_rank(const Training& training) {
  MPI_Init(nullptr, nullptr);
  mpi_session().start();
  try {
    Rank(training).run();
  } catch (const std::exception& error) {
    fail(error.what(), 1);
  }
  MPI_Finalize();
}

void print_info(const std::vector<std::string>& words) {
  const Training training(options_from(words));
  fmt::print("parameters={} images={} data={} columns={}\n",
             network::parameter_count(training.description), training.data.train.count(),
             training.data.train.origin, json_text(parse_json(columns_as_json())));
}

void simulate(simgrid::s4u::Engine& engine, const std::vector<std::string>& words) {
  if (words.size() < 2) throw std::invalid_argument("expected a platform and a number of ranks");
  int ranks = 0;
  read(words[1], ranks);
  const Training training(options_from({words.begin() + 2, words.end()}));
  if (training.options.seconds <= 0) throw std::invalid_argument("expected seconds of a batch");
  SMPI_init();
  engine.load_platform(words[0]);
  SMPI_app_instance_register("training", nullptr, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string host = fmt::format("node-{}", rank);
    const simgrid::s4u::ActorPtr actor = simgrid::s4u::Actor::init(host, engine.host_by_name(host));
    actor->set_property("instance_id", "training");
    actor->set_property("rank", fmt::format("{}", rank));
    actor->start([&training] { run_rank(training); });
  }
  engine.run();
  SMPI_finalize();
}

}  // namespace
}  // namespace stepladder::simulation

int main(int argc, char** argv) {
  smpi_init_options();
  simgrid::s4u::Engine engine(&argc, argv);  // takes the options of SimGrid
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (!words.empty() && words.front() == "info")
      stepladder::simulation::print_info({words.begin() + 1, words.end()});
    else
      stepladder::simulation::simulate(engine, words);
  } catch (const std::exception& error) {
    stepladder::simulation::fail(error.what(), 2);
  }
  return 0;
}
