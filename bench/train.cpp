// stepladder train: trains a network, alone or with replicas that cooperate, and records loss and
// accuracy.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "bench/commands.hpp"
#include "bench/crash_report.hpp"
#include "bench/networks.hpp"
#include "bench/option_checks.hpp"
#include "bench/selection.hpp"
#include "harness/data/network_data.hpp"
#include "harness/io/counted.hpp"
#include "harness/io/hash.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/number.hpp"
#include "harness/io/printable.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/results/run.hpp"
#include "harness/training/checkpoint.hpp"
#include "harness/training/mode.hpp"
#include "harness/training/train_row.hpp"
#include "harness/training/trainer.hpp"

namespace stepladder {

// In checkpoints; the learning rate follows from the step.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Progress, step, samples, loss, seconds, compute, exposed,
                                   waiting, hidden, bytes, staleness)

namespace {

struct TrainOptions {
  NetworkChoice network;
  std::string mode = "single", use = "best", data;
  std::int64_t steps = 0, epochs = 0, log_every = 10, evaluate_every = 0, warm_up = 0;
  double target_accuracy = 0;
  int threads = 0, replicas = 0;
  int shift = 2;
  bool batch_per_rank = false, check_ranks = false;
  std::string slow;
  std::string checkpoint;
  std::int64_t every = 100;
  BestOptions best;
  RunChoice run;
};

// "1:3" or "1:3:100:200": rank, factor, first step and step after the last.
Slowdown slowdown_of(const std::string& text) {
  if (text.empty()) return {};
  std::vector<std::string> parts;
  std::istringstream words(text + ':');
  for (std::string part; std::getline(words, part, ':');) parts.push_back(part);
  Slowdown slow;
  const bool has_steps = parts.size() == 4;
  const auto rank = number_in<int>(parts[0]);
  const auto factor = number_in<double>(parts.size() > 1 ? parts[1] : "");
  const auto from = has_steps ? number_in<std::int64_t>(parts[2]) : 0,
             to = has_steps ? number_in<std::int64_t>(parts[3]) : slow.to;
  if ((parts.size() != 2 && !has_steps) || !rank || *rank < 0 || !factor || !(*factor >= 1) ||
      !from || *from < 0 || !to || *to < *from)
    throw std::runtime_error(printable(fmt::format(
        "--slow {}: expected RANK:FACTOR or RANK:FACTOR:FROM:TO, a factor from 1 and steps",
        text)));
  return {*rank, *factor, *from, *to};
}

// --- checkpoints ---------------------------------------------------------------------------------

// What a training must have in common with the one that wrote a checkpoint. The number of ranks is
// not part of it in synchronous modes, whose weights depend on it by rounding only.
std::vector<std::string> identity_of(const TrainOptions& options,
                                     const network::NetworkDescription& description,
                                     const data::Dataset& data, bool synchronous) {
  const network::OptimizerDescription& o = description.optimizer;
  // Network, input, weight decay, layers.
  const std::vector<std::string> own = network::identity_of(description);
  std::vector<std::string> lines = {
      own[0],
      own[1],
      fmt::format("batch: {}", description.batch),
      fmt::format("optimizer: {}", sgd_update::name_of(o.type)),
      fmt::format("learning rate: {:g}, decay {:g} every {} samples", o.learning_rate, o.decay,
                  o.decay_every_samples),
      own[2],
      fmt::format("momentum, rho, betas, epsilon: {:g} {:g} {:g} {:g} {:g}", o.momentum, o.rho,
                  o.beta1, o.beta2, o.epsilon),
      fmt::format("data: {}, {} images", data.origin, data.count()),
      fmt::format("shift: {}", options.shift),
      fmt::format("mode: {}", options.mode),
      fmt::format("use: {}", options.use),
      fmt::format("seed: {}", options.run.seed),
      fmt::format("warm-up: {}", options.warm_up)};
  if (!synchronous) lines.push_back(fmt::format("ranks: {}", mpi_session().ranks()));
  lines.insert(lines.end(), own.begin() + 3, own.end());
  return lines;
}

// `rungs`: of each rank.
Checkpoint checkpoint_of(std::vector<std::string> identity, const std::string& data_hash,
                         const Progress& total, double accuracy, const nlohmann::json& rungs,
                         TrainableNetwork& network) {
  network.download();
  const auto copy = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  nlohmann::json progress = total;
  progress.update({{"data", data_hash}, {"accuracy", accuracy}, {"rungs", rungs}});
  return {std::move(identity),
          std::move(progress),
          {{"parameters", copy(network.parameters())},
           {"state1", copy(network.state1())},
           {"state2", copy(network.state2())}}};
}

// Rank 0 reads; all ranks have the progress, and rank 0 the arrays. Throws if its images are not
// those of `data_hash`.
std::optional<Checkpoint> load_checkpoint(const CheckpointFolder* folder,
                                          const std::vector<std::string>& identity,
                                          const std::string& data_hash) {
  std::optional<Checkpoint> loaded;
  if (folder != nullptr) {
    std::vector<std::string> refused;
    loaded = folder->load(identity, refused);
    for (const std::string& reason : refused)
      fmt::print(stderr, "stepladder: checkpoint refused: {}\n", reason);
    if (loaded && loaded->progress.value("data", data_hash) != data_hash)
      throw std::runtime_error(
          fmt::format("the checkpoint of step {} is of a training on other images or labels "
                      "(hash {}, not {}): name those with --data, or another folder",
                      loaded->progress.value("step", std::int64_t{0}),
                      loaded->progress.value("data", data_hash), data_hash));
  }
  const std::string progress = mpi_session().broadcast(loaded ? json_text(loaded->progress) : "");
  if (progress.empty()) return std::nullopt;
  if (!loaded) loaded = Checkpoint{identity, parse_json(progress), {}};
  return loaded;
}

// Those that this rank used; if there were fewer ranks, those of rank 0.
PlanStore::Names rungs_of(const Checkpoint& checkpoint) {
  const nlohmann::json& rungs = checkpoint.progress.at("rungs");
  const auto rank = static_cast<std::size_t>(mpi_session().rank());
  return rungs.at(rank < rungs.size() ? rank : 0).get<PlanStore::Names>();
}

void restore(const Checkpoint& checkpoint, Mode& mode) {
  TrainableNetwork& network = mode.network();
  const Communicator communicator("the checkpoint");
  const auto into = network.trained();
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (mpi_session().rank() == 0) {
      const std::vector<float>& values = checkpoint.arrays.at(i).second;
      if (values.size() != into[i].size())
        throw std::runtime_error(fmt::format("checkpoint: {} has {} values, the network {}",
                                             checkpoint.arrays[i].first, values.size(),
                                             into[i].size()));
      std::ranges::copy(values, into[i].begin());
    }
    communicator.broadcast(0, into[i]);
  }
  network.upload_parameters();
  network.upload_state();
  mode.restart(checkpoint.progress.get<Progress>());
}

// --- rungs.json ----------------------------------------------------------------------------------

// The trainings in one run folder use the same rungs for the same problems: they are compared with
// each other, and only the first one tries all candidates.
constexpr const char* rungs_file = "rungs.json";

PlanStore::Names known_rungs(const Run& run) {
  std::string text;
  if (run.writes())
    if (const nlohmann::json json = run.folder().read_json(rungs_file); json.is_object())
      text = json_text(json);
  text = mpi_session().broadcast(text);
  return text.empty() ? PlanStore::Names() : parse_json(text).get<PlanStore::Names>();
}

void save_rungs(const Run& run, const PlanStore& plans) {
  nlohmann::json all = run.folder().read_json(rungs_file);
  if (!all.is_object()) all = nlohmann::json::object();
  for (const auto& [problem, variant] : plans.chosen()) all.emplace(problem, variant);
  run.folder().write_json(rungs_file, all);
}

// --- a training ----------------------------------------------------------------------------------

bool is_of(const CsvRow& row, const TrainingId& id) {
  return row.text("network") == id.network && row.text("use") == id.use &&
         row.text("mode") == id.mode && row.text("seed") == fmt::format("{}", id.seed) &&
         row.text("batch") == fmt::format("{}", id.batch) &&
         row.text("optimizer") == id.optimizer &&
         row.text("threads") == fmt::format("{}", id.threads) &&
         row.text("ranks") == fmt::format("{}", id.ranks) &&
         row.text("hosts") == fmt::format("{}", id.hosts);
}

class Training {
 public:
  Training(const TrainOptions& options, const data::DatasetPair& data,
           std::vector<std::string> identity, std::string data_hash, const PlanStore& plans,
           Mode& mode, std::int64_t batch, TrainingId id, const Run& run)
      : options_(options),
        data_(data),
        identity_(std::move(identity)),
        data_hash_(std::move(data_hash)),
        plans_(plans),
        mode_(mode),
        per_epoch_(data.train.count() / batch),
        evaluate_every_(options.evaluate_every == 0
                            ? per_epoch_
                            : std::max<std::int64_t>(1, options.evaluate_every / batch)),
        id_(std::move(id)) {
    if (run.writes()) {
      // NOLINTNEXTLINE(modernize-make-unique): a Table does not move
      table_.reset(new Table(run.folder().table(train_columns())));
      if (!options.checkpoint.empty()) folder_.emplace(options.checkpoint);
    }
    mode_.on_step([this](const Progress& progress) {
      if (interrupted && mpi_session().ranks() == 1) throw Interrupted{};
      if (progress.step < boundary_) append(progress, {}, false);
    });
  }

  // Removes the rows of steps that are made again. Rank 0.
  void forget_rows_after(std::int64_t step) {
    if (table_)
      table_->remove_rows([&](const CsvRow& row) {
        return is_of(row, id_) && row.text("device") == id_.device &&
               row.integer("step", 0, std::numeric_limits<std::int64_t>::max()) > step;
      });
  }

  // Returns the last accuracy on the held-out images, `accuracy` if there is no step to make.
  double run(std::int64_t steps, double accuracy) {
    const auto reached = [&] {
      return options_.target_accuracy > 0 && accuracy >= options_.target_accuracy;
    };
    while (mode_.progress().step < steps && !reached()) {
      const std::int64_t from = mode_.progress().step;
      const std::int64_t evaluation = (from / evaluate_every_ + 1) * evaluate_every_;
      const std::int64_t save =
          options_.checkpoint.empty() ? steps : (from / options_.every + 1) * options_.every;
      boundary_ = std::min({steps, evaluation, save});
      mode_.train(boundary_);
      const std::int64_t step = mode_.progress().step;
      const Progress total = mode_.total();
      mode_.collect();
      if (step >= steps || step >= evaluation) {
        accuracy = accuracy_over_ranks(mode_.network(), data_.test);
        append(total, accuracy, true);
        print(total, accuracy);
      } else if (step % options_.log_every == 0) {
        append(total, {}, true);
      }
      if (!options_.checkpoint.empty() && (step >= save || step >= steps || reached()))
        save_checkpoint(total, accuracy);
      if (mpi_session().max(interrupted ? 1 : 0) > 0) throw Interrupted{};
    }
    return accuracy;
  }

 private:
  void save_checkpoint(const Progress& total, double accuracy) {
    nlohmann::json rungs = nlohmann::json::array();
    for (const std::string& text :
         Communicator("the checkpoint").texts(json_text(nlohmann::json(plans_.chosen()))))
      rungs.push_back(parse_json(text));
    if (folder_)
      folder_->save(total.step,
                    checkpoint_of(identity_, data_hash_, total, accuracy, rungs, mode_.network()));
  }

  void append(const Progress& p, std::optional<double> accuracy, bool of_all_ranks) {
    if (!table_) return;
    table_->append({train_columns().line(
        train_row(id_, mode_.all_reduce(), p, per_epoch_, accuracy, of_all_ranks))});
  }

  void print(const Progress& p, double accuracy) const {
    if (mpi_session().rank() != 0) return;
    fmt::print("epoch {:3}  step {:6}  {:7.1f} s  loss {:.4f}  held-out accuracy {:.2f} %\n",
               (p.step - 1) / per_epoch_ + 1, p.step, p.seconds, p.loss, 100 * accuracy);
    std::fflush(stdout);
  }

  const TrainOptions& options_;
  const data::DatasetPair& data_;
  std::vector<std::string> identity_;
  std::string data_hash_;  // rank 0, with checkpoints
  const PlanStore& plans_;
  Mode& mode_;
  std::int64_t per_epoch_, evaluate_every_, boundary_ = 0;  // steps
  TrainingId id_;
  std::unique_ptr<Table> table_;            // rank 0
  std::optional<CheckpointFolder> folder_;  // rank 0
};

// Where the replicas run must fit how the program was started.
void require_replicas(const ModeInfo& info, int replicas) {
  if (info.replicas != ModeInfo::Replicas::ranks && mpi_session().ranks() > 1)
    throw std::runtime_error(
        fmt::format("mode {} runs in one process; start it without mpirun{}", info.name,
                    info.replicas == ModeInfo::Replicas::threads ? ", with --replicas" : ""));
  if (replicas > 0 && info.replicas != ModeInfo::Replicas::threads)
    throw std::runtime_error(
        fmt::format("--replicas {}: mode {} has no replica threads{}", replicas, info.name,
                    info.replicas == ModeInfo::Replicas::ranks
                        ? fmt::format("; start it with mpirun -np {}", replicas)
                        : ""));
}

// What a training reads before it makes anything.
struct TrainInputs {
  ModeSpec spec;
  const ModeEntry& mode_entry;
  int replicas;
  Slowdown slow;
  network::NetworkDescription description;
  UseSpec use;
  Place place;
  KnownChoices known;
  data::DatasetPair data;
};

TrainInputs inputs_of(const TrainOptions& options) {
  ModeSpec spec(options.mode);
  const ModeEntry& mode_entry = mode_named(spec.name());
  require_replicas(mode_entry.info, options.replicas);
  const MpiSession& mpi = mpi_session();
  const bool of_threads = mode_entry.info.replicas == ModeInfo::Replicas::threads;
  const int replicas = !of_threads            ? mpi.ranks()
                       : options.replicas > 0 ? options.replicas
                                              : default_threads().back();
  const Slowdown slow = slowdown_of(options.slow);
  if (slow.rank >= 0 && (of_threads || slow.rank >= replicas))
    throw std::runtime_error(
        fmt::format("--slow {}: there is no rank {}; mode {} runs on {} rank(s)", options.slow,
                    slow.rank, mode_entry.info.name, mpi.ranks()));
  if (options.check_ranks && !mode_entry.info.synchronous)
    throw std::runtime_error(fmt::format(
        "--check-ranks: the ranks of mode {} have different weights", mode_entry.info.name));
  network::NetworkDescription description = options.network.load();
  if (options.batch_per_rank) {
    if (!mode_entry.info.divides_batches)
      throw std::runtime_error(fmt::format(
          "--batch-per-rank: mode {} does not divide batches among ranks", mode_entry.info.name));
    description.batch *= replicas;
  }
  UseSpec use(options.use);
  const Place place = place_of(description, use);  // throws if a rung is missing, before data load
  if (place == Place::cuda && spec.name() != "single")
    throw std::runtime_error(fmt::format("mode {} runs on the CPU; --use {} selects the device",
                                         spec.name(), use.text()));
  KnownChoices known = options.best.load();
  data::DatasetPair data = data::data_for(description, options.data, options.run.seed);
  for (const data::Dataset* set : {&data.train, &data.test}) require_batch(*set, description);
  return {std::move(spec), mode_entry, replicas,         slow,           std::move(description),
          std::move(use),  place,      std::move(known), std::move(data)};
}

int run(const TrainOptions& options) {
  report_crashes();
  const MpiSession& mpi = mpi_session();
  const TrainInputs inputs = mpi.agree([&] { return inputs_of(options); });
  const auto& [spec, mode_entry, replicas, slow, description, use, place, known, data] = inputs;
  require_same_inputs(options.network, options.best);
  const std::vector<std::string> identity =
      identity_of(options, description, data.train, mode_entry.info.synchronous);
  mpi.require_same("training", identity);
  const bool of_threads = mode_entry.info.replicas == ModeInfo::Replicas::threads;
  const int threads = options.threads > 0 ? options.threads
                      : replicas > 1      ? 1
                                          : default_threads().back();
  threads_that_run({threads});
  TrainingSetup setup{.description = description,
                      .use = use,
                      .plans = nullptr,
                      .data = &data.train,
                      .threads = threads,
                      .replicas = replicas,
                      .shift = options.shift,
                      .seed = options.run.seed,
                      .scale = options.batch_per_rank ? static_cast<double>(replicas) : 1,
                      .warm_up = options.warm_up,
                      .log_every = options.log_every,
                      .check_ranks = options.check_ranks,
                      .slow = slow};
  Run run(options.run.options(data.train.origin));
  if (mpi.rank() == 0 && options.data.empty() && data::takes_digits(description) &&
      data.train.origin == "generated")
    fmt::print("No real digits in {}: `make data` downloads them. Training on generated images.\n",
               data::digits_directory().string());

  PlanStore plans(options.run.seed, known);
  setup.plans = &plans;
  std::optional<CheckpointFolder> folder;
  std::string data_hash;
  if (!options.checkpoint.empty() && mpi.rank() == 0) {
    folder.emplace(options.checkpoint);
    data_hash = data::hash_of(data);
  }
  if (folder && !options.run.resume)
    if (const auto files = folder->files_of(identity); !files.empty())
      throw std::runtime_error(fmt::format(
          "{} is a checkpoint of this training; --resume goes on from it, or name another folder",
          files.front().string()));
  std::optional<Checkpoint> checkpoint;
  if (!options.checkpoint.empty() && options.run.resume)
    checkpoint = load_checkpoint(folder ? &*folder : nullptr, identity, data_hash);
  plans.prefer(checkpoint ? rungs_of(*checkpoint) : known_rungs(run));
  const std::unique_ptr<Mode> mode = mode_entry.make(setup, spec);
  if (run.writes()) save_rungs(run, plans);
  if (mpi.rank() == 0)
    fmt::print(
        "{}: {} parameters, batch {}, mode {}, {}, use={}, data={} ({} to train on, {} held "
        "out)\n",
        description.name, network::parameter_count(description), description.batch, spec.text(),
        place == Place::cuda ? device()->name()
        : replicas == 1      ? counted(threads, "thread")
                        : fmt::format("{} {}, {} each", replicas, of_threads ? "replicas" : "ranks",
                                      counted(threads, "thread")),
        use.text(), data.train.origin, data.train.count(), data.test.count());
  const TrainingId id{.network = description.name,
                      .use = use.text(),
                      .mode = spec.text(),
                      .threads = threads,
                      .ranks = replicas,
                      .hosts = mpi.hosts(),
                      .device = place == Place::cuda ? device()->name() : "cpu",
                      .seed = options.run.seed,
                      .batch = description.batch,
                      .optimizer = options.network.optimizer_text(description)};
  Training training(options, data, identity, data_hash, plans, *mode, description.batch, id, run);
  if (checkpoint) {
    restore(*checkpoint, *mode);
    if (mpi.rank() == 0)
      fmt::print("resumed after step {} of {}\n", mode->progress().step, options.checkpoint);
  }
  if (!options.checkpoint.empty() && options.run.resume)
    training.forget_rows_after(checkpoint ? mode->progress().step : 0);

  const std::int64_t per_epoch = data.train.count() / description.batch;
  const double accuracy =
      training.run(options.steps > 0 ? options.steps : options.epochs * per_epoch,
                   checkpoint ? checkpoint->progress.at("accuracy").get<double>() : 0);
  mode->network().download();
  const Progress total = mode->total();
  run.save();
  if (!run.writes()) return 0;
  if (!total.staleness.empty()) {
    Table table = run.folder().table(staleness_columns());
    if (checkpoint) table.remove_rows([&](const CsvRow& row) { return is_of(row, id); });
    std::vector<std::vector<std::string>> rows;
    for (std::size_t s = 0; s < total.staleness.size(); ++s)
      rows.push_back(
          staleness_columns().line({id, static_cast<std::int64_t>(s), total.staleness[s]}));
    table.append(rows);
  }
  if (const std::string remark = mode->remark(total); !remark.empty()) fmt::print("{}\n", remark);
  fmt::print("weights fnv1a {:016x}\n",
             fnv1a(std::as_bytes(std::span(mode->network().parameters()))));
  fmt::print("{:.2f} % after {:.1f} s of training (data={})\n{}\n", 100 * accuracy, total.seconds,
             data.train.origin, (run.folder().directory() / "train.csv").string());
  if (options.target_accuracy > 0 && accuracy < options.target_accuracy) {
    fmt::print(stderr, "The target of {:.2f} % was not reached.\n", 100 * options.target_accuracy);
    return 1;
  }
  return 0;
}

}  // namespace

Command train_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("train", "Train a network on MNIST, CIFAR-10 or generated images");
  auto options = std::make_shared<TrainOptions>();
  options->network.add_to(
      *app, "Samples of one update of the weights, instead of the network's own batch");
  app->add_option("--mode", options->mode,
                  "How replicas cooperate, with options as in ssp,bound=2; `stepladder modes` "
                  "lists the modes");
  app->add_option(
      "--optimizer", options->network.optimizer,
      "sgd, momentum, adagrad, adadelta, rmsprop or adam, instead of the network's own");
  app->add_option("--learning-rate", options->network.learning_rate,
                  "Learning rate at the beginning; by default the optimizer's, else the network's")
      ->check(number_in_range(positive_float));
  auto* per_rank = app->add_flag("--batch-per-rank", options->batch_per_rank,
                                 "Every rank takes a whole batch; the learning rate grows with the "
                                 "ranks (linear scaling rule)");
  app->add_option("--warm-up", options->warm_up,
                  "Samples in which the learning rate grows to that of --batch-per-rank")
      ->transform(whole_number(0, most_counted))
      ->needs(per_rank);
  app->add_option(
      "--use", options->use,
      "best, bf16 (best, and operands of products rounded to bf16), compiler, vendor, opencl, "
      "cuda, cuda_tf32 or a rung for all primitives, and exceptions, for example "
      "best,convolution=direct");
  options->best.add_to(*app);
  app->add_option(
      "--data", options->data,
      "Folder of MNIST IDX or CIFAR-10 binary files, gzip or not, or `generated`; by "
      "default the digits of `make data` where they fit the network, else generated images");
  auto* steps = app->add_option("--steps", options->steps, "Steps to train")
                    ->transform(whole_number(1, most_counted));
  auto* epochs =
      app->add_option("--epochs", options->epochs, "Epochs to train; 15 unless --steps is given")
          ->transform(whole_number(1, most_counted));
  steps->excludes(epochs);
  app->add_option("--target-accuracy", options->target_accuracy,
                  "Stop at this held-out accuracy, 0 to 1; exit 1 if it is not reached")
      ->check(number_between(0.0, 1.0));
  app->add_option("--shift", options->shift,
                  "Pixels by which each training image is shifted at random, each way")
      ->transform(whole_number(0, 8));
  app->add_option("--log-every", options->log_every, "Steps between rows of train.csv")
      ->transform(whole_number(1, most_counted));
  app->add_option("--evaluate-every", options->evaluate_every,
                  "Samples between two evaluations; an epoch by default")
      ->transform(whole_number(1, most_counted));
  app->add_option("--threads", options->threads,
                  "Threads inside an operation; all cores by default, 1 with several replicas")
      ->transform(whole_number(1, most_threads));
  app->add_option(
         "--replicas", options->replicas,
         "Threads that hogwild, threads_over_samples and actors_learner start; all cores by "
         "default")
      ->transform(whole_number(1, most_threads));
  app->add_option("--checkpoint", options->checkpoint,
                  "Folder of checkpoints; with --resume the training goes on from the newest");
  app->add_option("--every", options->every, "Steps between two checkpoints")
      ->transform(whole_number(1, most_counted));
  app->add_option("--slow", options->slow,
                  "RANK:FACTOR[:FROM:TO]: this rank computes so many times slower, in these steps");
  app->add_flag("--check-ranks", options->check_ranks,
                "Synchronous modes: compare the weights of all ranks after each step");
  options->run.add_to(*app, "Seed of weights, batches and data");
  return {app, [options] {
            if (options->steps == 0 && options->epochs == 0) options->epochs = 15;
            return run(*options);
          }};
}

}  // namespace stepladder
