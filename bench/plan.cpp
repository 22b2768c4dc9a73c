// stepladder plan: predicts the time of one update of the weights for every mode of training and
// chooses one; with --measure it trains in each mode for a moment and compares.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "bench/commands.hpp"
#include "bench/networks.hpp"
#include "bench/option_checks.hpp"
#include "bench/selection.hpp"
#include "harness/data/network_data.hpp"
#include "harness/io/counted.hpp"
#include "harness/io/json_reader.hpp"
#include "harness/io/number.hpp"
#include "harness/io/printable.hpp"
#include "harness/measure/links.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/planner/layer_times.hpp"
#include "harness/planner/planner.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/results/run.hpp"
#include "harness/training/arithmetic.hpp"

namespace stepladder {
namespace {

struct PlanOptions {
  NetworkChoice network;
  int ranks = 0, hosts = 0, threads = 0;
  std::string use = "best", links, rate, data, out;
  BestOptions best;
  std::vector<std::string> modes;
  std::uint64_t seed = 1;
  bool measure = false, bytes = false, resume = false;
};

// --- links ---------------------------------------------------------------------------------------

CostCurve curve_of(const JsonValue& json) {
  std::vector<CostCurve::Point> points;
  for (const JsonValue& point : json.elements()) {
    const std::vector<JsonValue> pair = point.elements();
    if (pair.size() != 2) point.fail("[bytes, seconds]");
    const auto number = [](const JsonValue& value) {
      return value.number("a number from 0", [](double v) { return v >= 0 && std::isfinite(v); });
    };
    const CostCurve::Point now{number(pair[0]), number(pair[1])};
    if (!points.empty() && now.bytes <= points.back().bytes) point.fail("increasing bytes");
    points.push_back(now);
  }
  if (points.size() == 1) json.fail("two points or more, or none");
  return CostCurve(points);
}

LinkCosts link_costs_of(const JsonValue& json) {
  JsonObject object(json);
  return {curve_of(object.get("send")), curve_of(object.get("shift")),
          curve_of(object.get("swap"))};
}

// The links of a run with as many ranks and hosts, or else of the first entry with the links that
// are needed.
Links links_of_run(const std::filesystem::path& run, int ranks, int hosts) {
  const JsonFile file(run / "links.json");
  std::optional<Links> best;
  int best_score = -1;
  for (const JsonValue& entry : JsonObject(file.root()).get("links").elements()) {
    JsonObject object(entry);
    Links links;
    links.within = link_costs_of(object.get("within"));
    links.between = link_costs_of(object.get("between"));
    links.add = curve_of(object.get("add"));
    links.copy = curve_of(object.get("copy"));
    links.stream = curve_of(object.get("stream"));
    links.handoff = curve_of(object.get("handoff"));
    links.code = object.get("code").number("a number from 0", [](double v) { return v >= 0; });
    if ((hosts > 1 && links.between.send.empty()) || (ranks > hosts && links.within.send.empty()))
      continue;
    const auto same = [&](const char* what, int value) {
      return object.get(what).whole_number(1, 1 << 20) == value ? 1 : 0;
    };
    const int score = 2 * same("hosts", hosts) + same("ranks", ranks);
    if (score <= best_score) continue;
    best = std::move(links);
    best_score = score;
  }
  if (!best)
    throw std::runtime_error(fmt::format(
        "{}: no links{}{} were measured; expected those that {} ranks on {} hosts need",
        (run / "links.json").string(), hosts > 1 ? " between hosts" : "",
        ranks > hosts ? (hosts > 1 ? " and within one" : " within a host") : "", ranks, hosts));
  return *best;
}

// "1gbit" in bits per second.
double rate_of(const std::string& text) {
  const std::size_t of_unit = std::min<std::size_t>(text.size(), 4);
  std::string unit;
  for (const char c : text.substr(text.size() - of_unit))
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const double factor = unit == "kbit" ? 1e3 : unit == "mbit" ? 1e6 : unit == "gbit" ? 1e9 : 0;
  const auto number = number_in<double>(std::string_view(text).substr(0, text.size() - of_unit));
  if (!number || !(*number > 0) || factor == 0)
    throw std::runtime_error(printable(
        fmt::format("--rate {}: expected a number with kbit, mbit or gbit, such as 1gbit", text)));
  return *number * factor;
}

// Seconds per byte of work(to, from, count), at the rate of the memory.
template <class Work>
double per_byte(const Work& work) {
  constexpr std::size_t count = std::size_t{8} << 20U;
  std::vector<float> from(count, 1.0F), to(count, 1.0F);
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const double start = training_clock();
    work(to.data(), from.data(), count);
    seconds.push_back(training_clock() - start);
  }
  return summarize(seconds).median / static_cast<double>(count * sizeof(float));
}

// Without any measured links: copies and additions of this machine, and messages within a host that
// are copied once.
Links links_of_memory() {
  Links links;
  links.copy = CostCurve::line(
      0, per_byte([](float* to, const float* from, std::size_t n) { std::copy_n(from, n, to); }));
  links.add = CostCurve::line(0, per_byte([](float* to, const float* from, std::size_t n) {
                                add_to({to, n}, {from, n});
                              }));
  links.stream = links.copy;
  const CostCurve message = CostCurve::line(1e-6, links.copy(1e9) / 1e9);
  links.within = {message, message, message};
  links.handoff = message;
  links.code = links.copy(1e9) / 1e9;
  return links;
}

// --- the table -----------------------------------------------------------------------------------

struct Planned {
  ModeSpec spec;
  std::vector<Prediction> predictions = {};  // of each round
  std::vector<double> trainings = {};        // seconds of an update in each round
  Prediction prediction = {};
  double measured = 0;  // seconds; 0: not measured

  // The medians.
  void settle() {
    const auto middle = predictions.begin() + static_cast<std::ptrdiff_t>(predictions.size() / 2);
    std::ranges::nth_element(predictions, middle, {}, &Prediction::seconds);
    prediction = *middle;
    if (!trainings.empty()) measured = summarize(trainings).median;
  }
  double error() const { return 100 * (prediction.seconds() / measured - 1); }
};

bool can_run(const Planned& mode) { return mode.prediction.why_not.empty(); }

// Fastest first, then those that cannot run.
void sort(std::vector<Planned>& all) {
  std::ranges::stable_sort(all, [](const Planned& a, const Planned& b) {
    if (can_run(a) != can_run(b)) return can_run(a);
    return can_run(a) && a.prediction.seconds() < b.prediction.seconds();
  });
}

void print_table(const std::vector<Planned>& all, std::int64_t batch, bool measured) {
  std::size_t width = 4;
  for (const Planned& mode : all) width = std::max(width, mode.prediction.mode.size());
  fmt::print("{:<{}}  {:>10}  {:>16}  {:>10}  {:>9}  {:>9}  {:>11}{}\n", "mode", width,
             "compute ms", "communication ms", "waiting ms", "step ms", "samples/s", "sent KiB",
             measured ? "  measured ms  error %  all_reduce" : "  all_reduce");
  for (const Planned& mode : all) {
    const Prediction& p = mode.prediction;
    if (!can_run(mode)) {
      fmt::print("{:<{}}  -  {}\n", p.mode, width, p.why_not);
      continue;
    }
    fmt::print("{:<{}}  {:>10.3f}  {:>16.3f}  {:>10.3f}  {:>9.3f}  {:>9.0f}  {:>11.1f}", p.mode,
               width, 1e3 * p.compute, 1e3 * p.exposed, 1e3 * p.waiting, 1e3 * p.seconds(),
               static_cast<double>(batch) / p.seconds(), p.bytes / 1024);
    if (mode.measured > 0)
      fmt::print("  {:>11.3f}  {:>+7.1f}", 1e3 * mode.measured, mode.error());
    else if (measured)
      fmt::print("  {:>11}  {:>7}", "", "");
    fmt::print("{}{}\n", p.all_reduce.empty() ? "" : "  ", p.all_reduce);
  }
  fmt::print("Times and bytes of one update of the weights, means over the ranks.\n");
}

void print_choice(const std::vector<Planned>& all, std::int64_t batch) {
  if (!can_run(all.front())) {
    fmt::print("No mode has a prediction here.\n");
    return;
  }
  const Prediction& best = all.front().prediction;
  fmt::print("Use {}: {:.3f} ms an update, {:.0f} samples/s; it computes {:.0f} % of the time",
             best.mode, 1e3 * best.seconds(), static_cast<double>(batch) / best.seconds(),
             100 * best.compute / best.seconds());
  if (all.size() > 1 && can_run(all[1]))
    fmt::print(", and {} takes {:.0f} % longer", all[1].prediction.mode,
               100 * (all[1].prediction.seconds() / best.seconds() - 1));
  fmt::print(".\n");
  if (best.synchronous) return;
  const auto exact = std::ranges::find_if(
      all, [](const Planned& mode) { return can_run(mode) && mode.prediction.synchronous; });
  if (exact != all.end())
    fmt::print(
        "Its updates differ from those of one process and may need more samples; {} makes "
        "the same ones, in {:.3f} ms each.\n",
        exact->prediction.mode, 1e3 * exact->prediction.seconds());
}

void print_errors(const std::vector<Planned>& all) {
  std::vector<double> errors;
  const Planned* fastest = nullptr;
  for (const Planned& mode : all) {
    if (mode.measured == 0) continue;
    errors.push_back(std::abs(mode.error()));
    if (fastest == nullptr || mode.measured < fastest->measured) fastest = &mode;
  }
  if (errors.empty()) {
    fmt::print(
        "Nothing was measured: modes whose replicas are ranks need mpirun, those whose "
        "replicas are threads one process.\n");
    return;
  }
  std::ranges::sort(errors);
  const auto at = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(errors.size()))) - 1;
  fmt::print("Errors of {} predictions: median {:.1f} %, 90th percentile {:.1f} %.\n",
             errors.size(), summarize(errors).median, errors[at]);
  const auto choice =
      std::ranges::find_if(all, [](const Planned& mode) { return mode.measured > 0; });
  fmt::print(
      "The choice, {}, took {:.3f} ms; the fastest measured, {}, {:.3f} ms: the choice is "
      "{:.1f} % slower.\n",
      choice->prediction.mode, 1e3 * choice->measured, fastest->prediction.mode,
      1e3 * fastest->measured, 100 * (choice->measured / fastest->measured - 1));
}

// --- model parallelism in bytes ------------------------------------------------------------------

int print_bytes(const network::NetworkDescription& description, int ranks) {
  if (mpi_session().rank() != 0) return 0;
  constexpr double mib = 1 << 20;
  double forward = 0, backward = 0, survey = 0;
  fmt::print(
      "{}, batch {}, filters and neurons divided among {} ranks: MiB that all ranks together "
      "send per batch\n",
      description.name, description.batch, ranks);
  const auto print = [](const std::string& from, const std::string& to, double forward,
                        double backward, double survey) {
    fmt::print("{:<10}  {:<10}  {:>8.2f}  {:>8.2f}  {:>15.2f}\n", from, to, forward / mib,
               backward / mib, survey / mib);
  };
  fmt::print("{:<10}  {:<10}  {:>8}  {:>8}  {:>15}\n", "from", "to", "forward", "backward",
             "survey, forward");
  for (const ActivationExchange& e : activation_exchanges(description, ranks)) {
    print(e.from, e.to, e.forward, e.backward, e.survey);
    forward += e.forward;
    backward += e.backward;
    survey += e.survey;
  }
  print("all", "", forward, backward, survey);
  fmt::print(
      "The survey divides grouped layers among any number of ranks, counts no exchange before "
      "them, "
      "and gives the last layer and the loss to one rank; here a convolution is divided along its "
      "groups or not at all, every rank computes one that is not and needs all of its input, the "
      "last layer is divided, and its outputs are gathered for the loss.\n");
  return 0;
}

// --- measuring -----------------------------------------------------------------------------------

// Seconds of an update in a short training after a warm-up. With learning rate 0 the weights stay
// finite.
double measure(const ModeSpec& spec, TrainingSetup setup, double predicted) {
  constexpr double enough = 0.3;  // seconds
  setup.scale = 0;
  setup.log_every = std::numeric_limits<std::int64_t>::max();
  const std::unique_ptr<Mode> mode = mode_named(spec.name()).make(setup, spec);
  const std::int64_t steps =
      std::clamp<std::int64_t>(std::llround(enough / mpi_session().broadcast(predicted)), 4, 5000);
  mode->train(std::clamp<std::int64_t>(steps / 4, 2, 20));
  const Progress before = mode->progress();
  mode->train(mpi_session().broadcast(before.step) + steps);
  const Progress& after = mode->progress();
  return (after.seconds - before.seconds) / static_cast<double>(after.step - before.step);
}

bool is_measurable(const ModeInfo& info, int ranks) {
  if (info.replicas == ModeInfo::Replicas::ranks) return mpi_session().ranks() == ranks;
  return mpi_session().ranks() == 1;
}

// --- the command ---------------------------------------------------------------------------------

// All modes with their default options, overlap, and where there are several nodes the hybrids.
std::vector<std::string> all_modes(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const ModeEntry& entry : modes()) {
    const std::string name = entry.info.name;
    if (name == "hybrid") continue;
    names.push_back(name);
    if (name == "synchronous" && cluster.ranks > 1) names.emplace_back("synchronous,overlap=yes");
  }
  const int node = cluster.hosts > 1 ? cluster.ranks / cluster.hosts : 2;
  if (node > 1 && cluster.ranks % node == 0 && cluster.ranks > node)
    for (const char* between : {"token_ring", "parameter_server"})
      for (const char* inside : {"token_ring", "parameter_server", "model_parallel"})
        names.push_back(fmt::format("{}/{}", between, inside));
  return names;
}

// Under mpirun the ranks and hosts are those of the session.
Cluster cluster_of(const PlanOptions& options) {
  const MpiSession& mpi = mpi_session();
  Cluster cluster{.ranks = options.ranks, .hosts = options.hosts};
  const auto started = [](const char* option, int given, int here) {
    if (given != 0 && given != here)
      throw std::runtime_error(
          fmt::format("{} {}: mpirun started {}; leave the option out", option, given, here));
    return here;
  };
  if (mpi.ranks() > 1) {
    cluster.ranks = started("--ranks", options.ranks, mpi.ranks());
    cluster.hosts = started("--hosts", options.hosts, mpi.hosts());
    for (const auto& [option, value] :
         {std::pair{"--links", options.links}, std::pair{"--rate", options.rate}})
      if (!value.empty())
        throw std::runtime_error(
            fmt::format("{}: under mpirun the links are measured; leave the option out", option));
  }
  cluster.ranks = std::max(1, cluster.ranks);
  cluster.hosts = std::max(1, cluster.hosts);
  if (cluster.ranks % cluster.hosts != 0)
    throw std::runtime_error(
        fmt::format("{} ranks on {} hosts: expected as many ranks on every host", cluster.ranks,
                    cluster.hosts));
  // mpirun may have bound this rank to one core of its host.
  cluster.cores =
      mpi.ranks() > 1 ? static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) : default_threads().back();
  cluster.threads = options.threads > 0 ? options.threads
                    : cluster.ranks > 1 ? 1
                                        : default_threads().back();
  threads_that_run({cluster.threads});
  return cluster;
}

// Measured between the ranks of this command, or as the options say.
struct Network {
  Links links;
  std::string origin;
  bool has_messages = true;
};
Network network_of(const PlanOptions& options, const Cluster& cluster, Run* run) {
  const MpiSession& mpi = mpi_session();
  if (mpi.ranks() > 1) {
    const auto watched = mpi.watch("the measurement of the links", 60);
    return {
        run != nullptr ? run->links() : measure_links(last_level_cache_per_rank(detect_machine())),
        "measured between these ranks"};
  }
  Network network{links_of_memory(), "", cluster.ranks == 1};
  if (!options.links.empty()) {
    network = {links_of_run(options.links, cluster.ranks, cluster.hosts),
               fmt::format("of {}", options.links)};
  }
  if (!options.rate.empty()) {
    constexpr double latency = 30e-6;  // of TCP over Ethernet
    const double per_byte = 8 / rate_of(options.rate);
    const CostCurve line = CostCurve::line(latency, per_byte);
    // A swap is of all ranks of a host at once, with one link.
    network.links.between = {line, line,
                             CostCurve::line(latency, per_byte * cluster.ranks / cluster.hosts)};
    network.has_messages = true;
    network.origin += fmt::format("{}{} and {:.0f} us between hosts",
                                  network.origin.empty() ? "" : ", ", options.rate, 1e6 * latency);
    if (options.links.empty() && cluster.ranks > cluster.hosts)
      network.origin += ", a copy in memory within a host";
  }
  return network;
}

// What the plan is made of, except for the links.
struct PlanInputs {
  network::NetworkDescription description;
  Cluster cluster;
  UseSpec use;
  std::vector<Planned> modes;
  KnownChoices known;
  data::DatasetPair data;
};

PlanInputs inputs_of(const PlanOptions& options) {
  network::NetworkDescription description = options.network.load();
  Cluster cluster = cluster_of(options);
  if (!options.rate.empty() && cluster.hosts == 1)
    throw std::runtime_error("--rate is that of the links between hosts; expected --hosts from 2");
  if (description.batch < cluster.ranks)
    throw std::runtime_error(fmt::format("a batch of {} is smaller than the number of ranks, {}",
                                         description.batch, cluster.ranks));
  UseSpec use(options.use);
  if (place_of(description, use) != Place::cpu)
    throw std::runtime_error(
        fmt::format("--use {}: plan predicts trainings on the CPU", use.text()));
  std::vector<Planned> all;
  for (const std::string& text : options.modes.empty() ? all_modes(cluster) : options.modes)
    all.push_back({.spec = ModeSpec(text)});
  KnownChoices known = options.best.load();
  data::DatasetPair data = data::data_for(description, options.data, options.seed);
  require_batch(data.train, description);
  return {std::move(description), cluster,          std::move(use),
          std::move(all),         std::move(known), std::move(data)};
}

int run(const PlanOptions& options) {
  const MpiSession& mpi = mpi_session();
  if (options.bytes) {
    const auto [description, ranks] =
        mpi.agree([&] { return std::pair(options.network.load(), cluster_of(options).ranks); });
    return print_bytes(description, ranks);
  }
  auto [description, cluster, use, all, known, data] =
      mpi.agree([&] { return inputs_of(options); });
  require_same_inputs(options.network, options.best);
  std::optional<Run> run;
  if (!options.out.empty())
    run.emplace(RunOptions{.directory = options.out,
                           .resume = options.resume,
                           .command = command_line(),
                           .seed = options.seed,
                           .data = data.train.origin});

  const Network network = network_of(options, cluster, run ? &*run : nullptr);
  PlanStore plans(options.seed, known);
  const TrainingSetup setup{.description = description,
                            .use = use,
                            .plans = &plans,
                            .data = &data.train,
                            .threads = cluster.threads,
                            .replicas = cluster.ranks,
                            .shift = 2,
                            .seed = options.seed};
  // The medians of several rounds, each of which times the layers again and trains in all modes:
  // what disturbs the machine for a moment disturbs one round.
  const int rounds = options.measure ? 5 : 3;
  for (int round = 0; round < rounds; ++round) {
    MeasuredLayerTimes times(setup, cluster.hosts, cluster.cores);
    for (Planned& mode : all) {
      const ModeInfo& info = mode_named(mode.spec.name()).info;
      const bool of_ranks = info.replicas == ModeInfo::Replicas::ranks;
      Prediction now;
      now.mode = mode.spec.text();
      if (of_ranks && !network.has_messages)
        now.why_not = "the links are not known: start it with mpirun, or add --links RUN";
      else if (!of_ranks && mpi.ranks() > 1)
        now.why_not = "it runs in one process: start plan without mpirun";
      else
        now = predict(description, use, cluster, network.links, times, mode.spec);
      mode.predictions.push_back(now);
      if (options.measure && now.why_not.empty() && is_measurable(info, cluster.ranks))
        mode.trainings.push_back(measure(mode.spec, setup, now.seconds()));
    }
  }
  for (Planned& mode : all) mode.settle();
  sort(all);
  if (mpi.rank() != 0) return 0;

  fmt::print("{}, batch {}, {} on {}, {} each, use={}\n", description.name, description.batch,
             counted(cluster.ranks, "rank"), counted(cluster.hosts, "host"),
             counted(cluster.threads, "thread"), use.text());
  if (!network.origin.empty()) fmt::print("Links: {}.\n", network.origin);
  const int of_host = cluster.ranks / cluster.hosts,
            at_once = std::clamp(cluster.cores / cluster.threads, 1, of_host);
  if (mpi.ranks() > 1)
    fmt::print("Layers: timed on all ranks at the same time.\n");
  else
    fmt::print("Layers: timed on {} at the same time{}.\n", counted(at_once, "thread"),
               at_once < of_host ? fmt::format(", times {:.2g} for {} ranks on {} cores",
                                               1.0 * of_host / at_once, of_host, cluster.cores)
                                 : "");
  print_table(all, description.batch, options.measure);
  print_choice(all, description.batch);
  if (options.measure) print_errors(all);
  if (run) {
    std::vector<std::vector<std::string>> rows;
    for (const Planned& mode : all) {
      const Prediction& p = mode.prediction;
      PlanRow row{.network = description.name,
                  .use = use.text(),
                  .mode = p.mode,
                  .all_reduce = p.all_reduce,
                  .threads = cluster.threads,
                  .ranks = cluster.ranks,
                  .hosts = cluster.hosts,
                  .batch = description.batch,
                  .why_not = p.why_not};
      if (can_run(mode)) {
        row.compute_seconds = p.compute;
        row.exposed_seconds = p.exposed;
        row.waiting_seconds = p.waiting;
        row.predicted_seconds = p.seconds();
        row.bytes_per_step = p.bytes;
      }
      if (mode.measured > 0) row.measured_seconds = mode.measured;
      rows.push_back(plan_columns().line(row));
    }
    run->folder().table(plan_columns()).append(rows);
    run->save();
    fmt::print("{}\n", (run->folder().directory() / "plan.csv").string());
  }
  return 0;
}

}  // namespace

Command plan_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "plan", "Predict the time of a step in every mode of training, and choose one");
  auto options = std::make_shared<PlanOptions>();
  options->network.add_to(
      *app, "Samples of one update of the weights, instead of the network's own batch");
  app->add_option("--ranks", options->ranks, "Replicas; under mpirun the ranks that it started")
      ->transform(whole_number(1, 1 << 16));
  app->add_option("--hosts", options->hosts, "Hosts with as many ranks each; 1 by default")
      ->transform(whole_number(1, 1 << 16));
  app->add_option("--links", options->links,
                  "Run folder with the links.json of another run, without mpirun")
      ->check(CLI::ExistingDirectory);
  app->add_option("--rate", options->rate,
                  "Rate of the links between hosts, such as 1gbit, without mpirun");
  app->add_option("--use", options->use,
                  "best, bf16, compiler, vendor or a rung for all primitives, and exceptions, for "
                  "example best,convolution=direct");
  options->best.add_to(*app);
  app->add_option("--modes", options->modes,
                  "Modes with their options, as in train; all of them by default")
      ->expected(1, 1000);
  app->add_option("--threads", options->threads,
                  "Threads inside an operation; all cores by default, 1 with several ranks")
      ->transform(whole_number(1, most_threads));
  app->add_option("--data", options->data, "Folder of images, or `generated`, as in train");
  app->add_flag(
      "--measure", options->measure,
      "Also train in each mode for a moment and compare; with mpirun modes whose replicas "
      "are ranks, else those of one process");
  app->add_flag("--bytes", options->bytes,
                "Only print the bytes that model parallelism exchanges between layers");
  app->add_option("--seed", options->seed, "Seed of weights, batches and data")
      ->transform(whole_number(0, most_seed));
  app->add_option("--out", options->out, "Run folder for plan.csv; none by default");
  app->add_flag("--resume", options->resume, "Add to the run in that folder");
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder
