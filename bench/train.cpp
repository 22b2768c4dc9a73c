// stepladder train: trains a network for real, and writes loss and accuracy as they come.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "bench/commands.hpp"
#include "bench/networks.hpp"
#include "bench/selection.hpp"
#include "harness/data/batches.hpp"
#include "harness/ranks.hpp"
#include "harness/run.hpp"
#include "harness/training/network.hpp"

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
  std::string out;
  bool resume = false;
};

double accuracy_on(TrainableNetwork& network, const data::Dataset& held_out) {
  const auto batch = static_cast<std::size_t>(network.batch());
  const std::size_t image = held_out.image_size();
  std::int64_t correct = 0;
  for (std::size_t first = 0; first < held_out.labels.size(); first += batch) {
    // The last batch goes back over pictures already seen, which are not counted twice.
    const std::size_t from = std::min(first, held_out.labels.size() - batch);
    std::copy_n(held_out.images.begin() + static_cast<std::ptrdiff_t>(from * image), batch * image,
                network.images().begin());
    std::copy_n(held_out.labels.begin() + static_cast<std::ptrdiff_t>(from), batch,
                network.labels().begin());
    network.count_correct();
    const std::span<const float> rows = network.probabilities();
    const auto classes = static_cast<std::size_t>(network.description().classes);
    for (std::size_t n = first - from; n < batch; ++n) {
      const auto row = rows.subspan(n * classes, classes);
      correct +=
          std::max_element(row.begin(), row.end()) - row.begin() == held_out.labels[from + n];
    }
  }
  return static_cast<double>(correct) / static_cast<double>(held_out.labels.size());
}

// The rate after so many samples: multiplied by `decay` every `decay_every_samples`.
double learning_rate_after(const network::OptimizerDescription& optimizer, std::int64_t samples) {
  if (optimizer.decay_every_samples == 0) return optimizer.learning_rate;
  return optimizer.learning_rate *
         std::pow(optimizer.decay, static_cast<double>(samples / optimizer.decay_every_samples));
}

class Training {
 public:
  Training(const Options& options, Run& run, TrainableNetwork& network,
           const data::DatasetPair& data)
      : options_(options),
        network_(network),
        data_(data),
        batches_(data.train, static_cast<int>(network.batch()), options.seed, options.shift),
        table_(run.folder().table("train", train_columns)) {}

  // Returns the last accuracy on the held-out pictures.
  double go() {
    const std::int64_t per_epoch = batches_.per_epoch();
    const std::int64_t steps = options_.steps > 0 ? options_.steps : options_.epochs * per_epoch;
    double accuracy = 0;
    for (step_ = 1; step_ <= steps; ++step_) {
      if (interrupted) throw Interrupted{};
      one_step();
      const bool epoch_ends = step_ % per_epoch == 0, last = step_ == steps;
      if (epoch_ends || last) {
        accuracy = accuracy_on(network_, data_.test);
        write(accuracy);
        fmt::print("epoch {:3}  step {:6}  {:7.1f} s  loss {:.4f}  held-out accuracy {:.2f} %\n",
                   (step_ + per_epoch - 1) / per_epoch, step_, seconds_, last_loss_,
                   100 * accuracy);
        std::fflush(stdout);
        if (options_.target_accuracy > 0 && accuracy >= options_.target_accuracy) break;
      } else if (step_ % options_.log_every == 0) {
        write(-1);
      }
    }
    return accuracy;
  }
  double seconds() const { return seconds_; }

 private:
  void one_step() {
    const auto start = std::chrono::steady_clock::now();
    batches_.next(network_.images(), network_.labels());
    rate_ = learning_rate_after(network_.description().optimizer, (step_ - 1) * network_.batch());
    last_loss_ = network_.step(rate_);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!std::isfinite(last_loss_))
      throw std::runtime_error(fmt::format(
          "the loss is {} after step {}: the learning rate {:g} is too high for this network",
          last_loss_, step_, rate_));
  }
  void write(double accuracy) {
    const double samples = static_cast<double>(step_ * network_.batch());
    table_.append({{std::to_string(step_), std::to_string(batches_.epoch() + 1), number(seconds_),
                    number(samples / seconds_), number(last_loss_),
                    accuracy < 0 ? "" : number(accuracy), number(rate_), "single"}});
  }

  const Options& options_;
  TrainableNetwork& network_;
  const data::DatasetPair& data_;
  data::Batches batches_;
  Table table_;
  std::int64_t step_ = 0;
  double seconds_ = 0, last_loss_ = 0, rate_ = 0;  // seconds of training, evaluation left out
};

int run(const Options& options) {
  if (mpi_session().ranks() > 1)
    throw std::runtime_error("train runs on one rank; start it without mpirun");
  const network::NetworkDescription description = options.network.load();
  const UseSpec use(options.use);
  const data::DatasetPair data = load_data(options.data, description, options.seed);
  for (const data::Dataset* set : {&data.train, &data.test})
    if (set->count() < description.batch)
      throw std::runtime_error(fmt::format("{} pictures are too few for a batch of {}; use --batch",
                                           set->count(), description.batch));
  Run run({.directory =
               options.out.empty() ? default_run_directory() : std::filesystem::path(options.out),
           .resume = options.resume,
           .command = command_line(),
           .seed = options.seed,
           .data = data.train.origin,
           .threads = {options.threads}});
  PlanStore plans(options.seed);
  TrainableNetwork network(description, use, {.threads = options.threads, .seed = options.seed},
                           plans);
  fmt::print(
      "{}: {} parameters, batch {}, {} threads, use={}, data={} ({} to train on, {} held out)\n",
      description.name, network.parameters().size(), description.batch, options.threads, use.text(),
      data.train.origin, data.train.count(), data.test.count());
  Training training(options, run, network, data);
  const double accuracy = training.go();
  run.save();
  fmt::print("{:.2f} % after {:.1f} s of training (data={})\n{}\n", 100 * accuracy,
             training.seconds(), data.train.origin,
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
      program.add_subcommand("train", "Train a network on MNIST, CIFAR-10 or generated digits");
  auto options = std::make_shared<Options>();
  app->add_option("--network", options->network.name,
                  "mlp, mnist_cnn, cifar_cnn, alexnet or a JSON file")
      ->required();
  app->add_option("--batch", options->network.batch, "Instead of the network's own")
      ->check(CLI::PositiveNumber);
  app->add_flag("--without-optional", options->network.without_optional,
                "Leave out the layers marked optional");
  app->add_option("--use", options->use,
                  "A rung for all primitives and exceptions, as best,convolution=direct");
  app->add_option(
      "--data", options->data,
      "Folder of MNIST IDX or CIFAR-10 binary files, gzip or not; generated digits without it");
  auto* steps =
      app->add_option("--steps", options->steps, "Steps to train")->check(CLI::PositiveNumber);
  auto* epochs = app->add_option("--epochs", options->epochs,
                                 "Epochs to train; 15 unless --steps says otherwise")
                     ->check(CLI::PositiveNumber);
  steps->excludes(epochs);
  app->add_option("--target-accuracy", options->target_accuracy,
                  "Stop when the held-out accuracy, 0 to 1, is reached; exit 1 when it is not")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--shift", options->shift,
                  "Pixels by which each training picture is moved at random, each way")
      ->check(CLI::Range(0, 8));
  app->add_option("--log-every", options->log_every, "Steps between rows of train.csv")
      ->check(CLI::PositiveNumber);
  app->add_option("--threads", options->threads, "Threads inside an operation")
      ->check(CLI::PositiveNumber);
  app->add_option("--seed", options->seed, "Of weights, batches and generated data");
  app->add_option("--out", options->out, "The run's folder; results/local/<time> by default");
  app->add_flag("--resume", options->resume, "Go on with the run in that folder");
  return {app, [options] {
            if (options->steps == 0 && options->epochs == 0) options->epochs = 15;
            return run(*options);
          }};
}

}  // namespace stepladder
