#include "harness/results/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "harness/io/counted.hpp"
#include "harness/io/file.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/result_file.hpp"
#include "harness/problem/threads.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/result_columns.hpp"

namespace stepladder {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ceiling, name, unit, threads, level, value)

namespace {

constexpr const char* kept_file = "benchmark.later.jsonl";

NoiseTally tally_of(const nlohmann::json& noise) {
  return {noise.value("repetitions", std::int64_t{0}), noise.value("disturbed", std::int64_t{0}),
          noise.value("elapsed_s", 0.0), noise.value("stolen_s", 0.0),
          noise.value("others_s", 0.0)};
}

// `read` takes what a file of the resumed run holds. Content that this program does not write is an
// error.
template <class Read>
void read_resumed(const RunFolder& folder, const char* file, Read read) {
  const nlohmann::json content = folder.read_json(file);
  if (content.is_null()) return;
  try {
    read(content);
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(
        fmt::format("{}: holds other JSON than a run writes; choose another folder with --out",
                    (folder.directory() / file).string()));
  }
}

std::vector<Ceiling> ceilings_in(const nlohmann::json& file) {
  std::vector<Ceiling> found;
  for (const nlohmann::json& c : file.value("ceilings", std::vector<nlohmann::json>()))
    if (!c.at("value").is_null())  // it could not be measured
      found.push_back(c);
  return found;
}

// Another one each time Linux starts.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace

Run::Run(const RunOptions& options)
    : machine_(detect_machine()), cache_per_rank_(last_level_cache_per_rank(machine_)) {
  meter_ = std::make_unique<Meter>(records_);
  expect_calibration();
  if (mpi_session().rank() == 0) {
    folder_.emplace(options.directory, options.resume);
    environment_ = describe_environment(machine_);
    environment_["seed"] = options.seed;
    environment_["data"] = options.data;
    // Set by scripts/hosts.py: the hosts and their links.
    if (const char* network = std::getenv("STEPLADDER_NETWORK")) environment_["network"] = network;
    environment_["started_at"] = utc_time();
    environment_["commands"] = nlohmann::json::array();
    read_resumed(*folder_, "environment.json", [&](const nlohmann::json& before) {
      if (options.data == "none") environment_["data"] = before.value("data", "none");
      environment_["started_at"] = before.value("started_at", utc_time());
      environment_["commands"] = before.value("commands", std::vector<std::string>());
      if (before.contains("noise")) noise_before_ = tally_of(before["noise"]);
    });
    if (options.restarts == 0) environment_["commands"].push_back(options.command);
    read_resumed(*folder_, "benchmark.json", [&](const nlohmann::json& recorded) {
      records_ = recorded.value("benchmarks", std::vector<nlohmann::json>());
    });
    read_kept();
    set_noise();
    folder_->write_json("environment.json", environment_);
    std::filesystem::remove(folder_->directory() / kept_file);  // after the noise is on disk
    folder_->write_text("columns.json", columns_as_json());
  }
  load_ceilings(options.threads);
  if (options.restarts == 0) measure_missing_ceilings(options.threads);
  if (writes()) environment_["gpu_clocks_before"] = gpu_monitor_.clocks();
}

// The shortest times of the calibration loops since the machine started, by CPU model: a neighbour
// that is there during the whole run would otherwise not be noticed. A virtual machine that starts
// again may be on another host, with another clock.
std::filesystem::path Run::calibration_file() {
  return source_directory() / "results" / "local" / "calibration.json";
}

void Run::expect_calibration() {
  const nlohmann::json all = try_parse_json(text_in(calibration_file()));
  if (!all.is_object() || !all.contains(machine_.cpu_model)) return;
  const nlohmann::json& own = all[machine_.cpu_model];
  if (!own.is_object() || !own.contains("boot") || own["boot"] != boot_id()) return;
  const auto time = [&](const char* name) {
    const auto found = own.find(name);
    const bool is_time = found != own.end() && found->is_number() && found->get<double>() > 0;
    return is_time ? found->get<double>() : Calibration::unknown;
  };
  meter_->guard().expect({time("latency_s"), time("throughput_s")});
}

void Run::save_calibration() {
  const Calibration& fastest = meter_->guard().fastest();
  try {
    std::filesystem::create_directories(calibration_file().parent_path());
    nlohmann::json all = try_parse_json(text_in(calibration_file()));
    if (!all.is_object()) all = nlohmann::json::object();
    all[machine_.cpu_model] = {
        {"latency_s", fastest.latency}, {"throughput_s", fastest.throughput}, {"boot", boot_id()}};
    replace_file(calibration_file(), json_text(all, 1) + "\n");
  } catch (const std::exception&) {  // sources that cannot be written: the next run knows less
  }
}

// Those of the folder; else, of the file that STEPLADDER_CEILINGS names, those on these numbers of
// threads that run.
void Run::load_ceilings(const std::vector<int>& threads) {
  if (!writes()) return;
  read_resumed(*folder_, "ceilings.json", [&](const nlohmann::json& recorded) {
    ceilings_ = ceilings_in(recorded);
    for (const nlohmann::json& r : recorded.value("refused", std::vector<nlohmann::json>()))
      refused_ceilings_.push_back(
          {r.at("threads"), r.at("cores_of_others"), r.value("inconsistent", "")});
  });
  const char* known = std::getenv("STEPLADDER_CEILINGS");
  if (known == nullptr || !ceilings_.empty()) return;
  try {
    ceilings_ = ceilings_in(parse_json(text_in(known)));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format(
        "STEPLADDER_CEILINGS={}: expected ceilings.json of a run; {}", known, error.what()));
  }
  std::erase_if(ceilings_, [&](const Ceiling& c) {
    return std::find(threads.begin(), threads.end(), c.threads) == threads.end() ||
           !why_fewer_threads(c.threads).empty();
  });
  if (!ceilings_.empty()) environment_["ceilings_from"] = known;
}

// Ceilings that were measured beside a neighbour, or on a core that two threads shared, are too
// low, and are refused. Ranks are each other's neighbours, so that theirs are not judged.
std::vector<Ceiling> Run::measured_ceilings(int threads) {
  if (const std::string reason = why_fewer_threads(threads); !reason.empty()) {
    fmt::print(stderr, "No ceilings: {}.\n", reason);
    return {};
  }
  constexpr int attempts = 2;
  constexpr double most_cores = 0.25;  // of others
  RefusedCeilings refused{threads, 0, ""};
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (!refused.inconsistent.empty()) raise_ceilings(1, {"fma_peak"});  // it may be at fault
    Neighbours neighbours;
    std::vector<Ceiling> found = measure_ceilings(machine_.caches, threads);
    refused.cores_of_others = neighbours.cpu_seconds() / neighbours.elapsed();
    if (mpi_session().ranks() > 1) return found;
    refused.inconsistent = why_inconsistent(ceilings_, found, machine_.cores);
    if (refused.cores_of_others < most_cores && refused.inconsistent.empty()) return found;
  }
  fmt::print(
      stderr,
      "Ceilings on {} were refused: {}, so rows have no percent_of_roof. Stop what else "
      "runs, and measure again (bench: with --resume --again).\n",
      counted(threads, "thread"),
      refused.inconsistent.empty()
          ? fmt::format("other processes used {:.1f} cores meanwhile", refused.cores_of_others)
          : refused.inconsistent);
  refused_ceilings_.push_back(std::move(refused));
  return {};
}

void Run::measure_missing_ceilings(const std::vector<int>& threads) {
  std::vector<int> one_first = threads;  // the others are compared with it
  std::stable_partition(one_first.begin(), one_first.end(), [](int count) { return count == 1; });
  for (const int count : one_first) {
    bool known = false;
    for (const Ceiling& c : ceilings_) known = known || c.threads == count;
    mpi_session().barrier();
    if (mpi_session().broadcast(std::int64_t{known}) != 0) continue;
    std::erase_if(refused_ceilings_, [&](const auto& refused) { return refused.threads == count; });
    for (Ceiling& c : measured_ceilings(count)) ceilings_.push_back(std::move(c));
  }
  write_ceilings();
}

void Run::raise_ceilings(int threads, const std::set<std::string>& roofs) {
  const auto wanted = [&](const std::string& name) {  // with fma_peak those of narrower sets
    return std::any_of(roofs.begin(), roofs.end(), [&](const std::string& roof) {
      return roof.starts_with(name) || (roof == "fma_peak" && name.starts_with(roof));
    });
  };
  for (const Ceiling& again : measure_ceilings(machine_.caches, threads, wanted))
    for (Ceiling& c : ceilings_)
      if (c.name == again.name && c.threads == again.threads && c.level == again.level)
        c.value = std::max(c.value, again.value);
  write_ceilings();
}

void Run::write_ceilings() {
  if (!writes()) return;
  nlohmann::json refused = nlohmann::json::array();
  for (const RefusedCeilings& r : refused_ceilings_)
    refused.push_back({{"threads", r.threads},
                       {"cores_of_others", r.cores_of_others},
                       {"inconsistent", r.inconsistent}});
  folder_->write_json("ceilings.json",
                      {{"schema_version", 1}, {"ceilings", ceilings_}, {"refused", refused}});
}

const Links& Run::links() {
  if (measured_links_.empty()) measure_links_again();
  return measured_links_.back();
}

void Run::refresh_links() {
  using namespace std::chrono_literals;
  const auto age = std::chrono::steady_clock::now() - links_measured_at_;
  // So that they take at most a tenth of the time.
  const bool old = measured_links_.empty() || (age > 5s && age > 9 * links_took_);
  if (mpi_session().max(old ? 1 : 0) > 0) measure_links_again();
}

void Run::measure_links_again() {
  const MpiSession& mpi = mpi_session();
  const auto start = std::chrono::steady_clock::now();
  {
    const auto watched = mpi.watch("the measurement of the links", 60);
    measured_links_.push_back(measure_links(cache_per_rank_));
  }
  links_measured_at_ = std::chrono::steady_clock::now();
  links_took_ = links_measured_at_ - start;
  if (!writes()) return;
  // Each command has an entry, after those of earlier commands.
  if (!links_before_) {
    const nlohmann::json file = folder_->read_json("links.json");
    links_before_ = file.contains("links") ? file["links"] : nlohmann::json::array();
  }
  nlohmann::json all = *links_before_;
  nlohmann::json medians = as_json(median_of(measured_links_));
  medians["ranks"] = mpi.ranks();
  medians["hosts"] = mpi.hosts();
  medians["measurements"] = measured_links_.size();
  all.push_back(medians);
  folder_->write_json("links.json", {{"schema_version", 1}, {"links", all}});
}

// The noise of the whole run, which several commands may have made.
void Run::set_noise() {
  NoiseTally all = noise_before_;
  all += meter_->noise();
  environment_["noise"] = {{"repetitions", all.repetitions},
                           {"disturbed", all.disturbed},
                           {"elapsed_s", all.elapsed_seconds},
                           {"stolen_s", all.stolen_seconds},
                           {"others_s", all.others_seconds}};
  environment_["quiet_sentence"] = all.repetitions > 0 ? all.sentence() : "";
}

// A line holds records, the number of those before, and the noise of the run so far.
void Run::keep() {
  if (!writes()) return;
  set_noise();
  const auto first = records_.begin() + static_cast<std::ptrdiff_t>(kept_records_);
  const nlohmann::json line = {
      {"before", kept_records_},
      {"benchmarks", nlohmann::json(nlohmann::json::array_t(first, records_.end()))},
      {"noise", environment_["noise"]}};
  AppendedFile(folder_->directory() / kept_file).append(json_text(line) + "\n");
  kept_records_ = records_.size();
}

// What a crash left. A torn last line does not count; nor do lines whose records benchmark.json
// has.
void Run::read_kept() {
  const std::filesystem::path file = folder_->directory() / kept_file;
  std::ifstream in(file);
  for (std::string text; std::getline(in, text);) {
    const nlohmann::json line = try_parse_json(text);
    if (!line.is_object() || line.value("before", std::size_t{0}) != records_.size()) break;
    for (const nlohmann::json& record : line.value("benchmarks", nlohmann::json::array()))
      records_.push_back(record);
    if (line.contains("noise")) noise_before_ = tally_of(line["noise"]);
  }
  if (!in.is_open()) {
    kept_records_ = records_.size();
    return;
  }
  write_records();
}

void Run::write_records() {
  folder_->write_json("benchmark.json",
                      {{"schema_version", 1},
                       {"context", {{"executable", "stepladder"}, {"date", utc_time()}}},
                       {"benchmarks", records_}});
  kept_records_ = records_.size();
}

void Run::save() {
  if (!writes()) return;
  set_noise();
  save_calibration();
  environment_["gpu_clocks_after"] = gpu_monitor_.clocks();
  environment_["finished_at"] = utc_time();
  folder_->write_json("environment.json", environment_);
  write_records();
  std::filesystem::remove(folder_->directory() / kept_file);
  for (const Columns* columns : std::initializer_list<const Columns*>{
           &summary_columns(), &step_columns(), &inference_columns()})
    if (folder_->has(*columns))
      folder_->write_text(columns->name() + ".json", columns->as_json(folder_->read(*columns)));
}

namespace {

extern "C" void note_signal(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void stop_on_signals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = note_signal;
    sigaction(signal, &action, nullptr);
  }
  std::signal(SIGCHLD, SIG_DFL);  // where the parent ignores it, no child could be waited for
}

}  // namespace stepladder
