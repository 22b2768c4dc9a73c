// stepladder train: trains a network and records loss and accuracy.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "bench/commands.hpp"
#include "bench/networks.hpp"
#include "bench/selection.hpp"
#include "harness/data/network_data.hpp"
#include "harness/io/mpi_session.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/results/run.hpp"
#include "harness/training/trainer.hpp"

namespace stepladder {
namespace {

struct Options {
  NetworkChoice network;
  std::string use = "best", data;
  std::int64_t steps = 0, epochs = 0, log_every = 10;
  double target_accuracy = 0;
  int threads = default_threads().back();
  int shift = 2;
  std::uint64_t seed = 1;
  std::string out, tuned;
  bool resume = false;
};

// One row of train.csv; the accuracy is empty where it was not measured.
std::vector<std::string> row_of(const Trainer& trainer, std::int64_t batch,
                                std::optional<double> accuracy) {
  const auto samples = static_cast<double>(trainer.steps() * batch);
  return train_columns().line({.step = trainer.steps(),
                               .epoch = trainer.epoch() + 1,
                               .seconds = trainer.seconds(),
                               .samples_per_second = samples / trainer.seconds(),
                               .loss = trainer.loss(),
                               .accuracy = accuracy,
                               .learning_rate = trainer.learning_rate()});
}

// Returns the last accuracy on the held-out images.
double train(const Options& options, TrainableNetwork& network, Trainer& trainer,
             const data::Dataset& held_out, Table table) {
  const std::int64_t per_epoch = trainer.steps_per_epoch();
  const std::int64_t steps = options.steps > 0 ? options.steps : options.epochs * per_epoch;
  double accuracy = 0;
  while (trainer.steps() < steps) {
    if (interrupted) throw Interrupted{};
    trainer.step();
    if (trainer.steps() % per_epoch == 0 || trainer.steps() == steps) {
      accuracy = accuracy_on(network, held_out);
      table.append({row_of(trainer, network.batch(), accuracy)});
      fmt::print("epoch {:3}  step {:6}  {:7.1f} s  loss {:.4f}  held-out accuracy {:.2f} %\n",
                 trainer.epoch() + 1, trainer.steps(), trainer.seconds(), trainer.loss(),
                 100 * accuracy);
      std::fflush(stdout);
      if (options.target_accuracy > 0 && accuracy >= options.target_accuracy) break;
    } else if (trainer.steps() % options.log_every == 0) {
      table.append({row_of(trainer, network.batch(), std::nullopt)});
    }
  }
  return accuracy;
}

int run(const Options& options) {
  if (mpi_session().ranks() > 1)
    throw std::runtime_error("train runs on one rank; start it without mpirun");
  const network::NetworkDescription description = options.network.load();
  const UseSpec use(options.use);
  place_of(description, use);  // throws if a rung is missing, before data are loaded
  const Tuning tuning = load_tuning(options.tuned);
  const data::DatasetPair data = data::data_for(description, options.data, options.seed);
  for (const data::Dataset* set : {&data.train, &data.test})
    if (set->count() < description.batch)
      throw std::runtime_error(fmt::format("{} images are too few for a batch of {}; use --batch",
                                           set->count(), description.batch));
  Run run({.directory =
               options.out.empty() ? default_run_directory() : std::filesystem::path(options.out),
           .resume = options.resume,
           .command = command_line(),
           .seed = options.seed,
           .data = data.train.origin,
           .threads = {options.threads}});
  if (options.data.empty() && data::takes_digits(description) && data.train.origin == "generated")
    fmt::print("No real digits in {}: `make data` downloads them. Training on generated images.\n",
               data::digits_directory().string());
  PlanStore plans(options.seed, tuning);
  TrainableNetwork network(description, use, {.threads = options.threads, .seed = options.seed},
                           plans);
  fmt::print("{}: {} parameters, batch {}, {}, use={}, data={} ({} to train on, {} held out)\n",
             description.name, network::parameter_count(description), description.batch,
             network.place() == Place::cuda ? device()->name()
                                            : fmt::format("{} threads", options.threads),
             use.text(), data.train.origin, data.train.count(), data.test.count());
  Trainer trainer(network, data.train, options.seed, options.shift);
  const double accuracy =
      train(options, network, trainer, data.test, run.folder().table(train_columns()));
  run.save();
  fmt::print("{:.2f} % after {:.1f} s of training (data={})\n{}\n", 100 * accuracy,
             trainer.seconds(), data.train.origin,
             (run.folder().directory() / "train.csv").string());
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
  auto options = std::make_shared<Options>();
  app->add_option("--network", options->network.name,
                  "mlp, mnist_cnn, cifar_cnn, alexnet or a JSON file")
      ->required();
  app->add_option("--batch", options->network.batch, "Batch size, instead of the network's own")
      ->check(CLI::PositiveNumber);
  app->add_flag("--without-optional", options->network.without_optional,
                "Leave out the layers marked optional");
  app->add_option("--use", options->use,
                  "Rung for all primitives, and exceptions, for example best,convolution=direct");
  app->add_option("--tuned", options->tuned, "Choices of `stepladder tune`, for best")
      ->check(CLI::ExistingFile);
  app->add_option(
      "--data", options->data,
      "Folder of MNIST IDX or CIFAR-10 binary files, gzip or not, or `generated`; by "
      "default the digits of `make data` where they fit the network, else generated images");
  auto* steps =
      app->add_option("--steps", options->steps, "Steps to train")->check(CLI::PositiveNumber);
  auto* epochs =
      app->add_option("--epochs", options->epochs, "Epochs to train; 15 unless --steps is given")
          ->check(CLI::PositiveNumber);
  steps->excludes(epochs);
  app->add_option("--target-accuracy", options->target_accuracy,
                  "Stop at this held-out accuracy, 0 to 1; exit 1 if it is not reached")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--shift", options->shift,
                  "Pixels by which each training image is shifted at random, each way")
      ->check(CLI::Range(0, 8));
  app->add_option("--log-every", options->log_every, "Steps between rows of train.csv")
      ->check(CLI::PositiveNumber);
  app->add_option("--threads", options->threads, "Threads inside an operation")
      ->check(CLI::PositiveNumber);
  app->add_option("--seed", options->seed, "Seed of weights, batches and data");
  app->add_option("--out", options->out, "Run folder; results/local/<time> by default");
  app->add_flag("--resume", options->resume, "Continue the run in that folder");
  return {app, [options] {
            if (options->steps == 0 && options->epochs == 0) options->epochs = 15;
            return run(*options);
          }};
}

}  // namespace stepladder
