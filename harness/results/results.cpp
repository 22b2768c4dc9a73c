#include "harness/results/results.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>

#include "harness/problem/suites.hpp"

namespace stepladder {

const std::vector<std::string> summary_columns = {"primitive",
                                                  "direction",
                                                  "variant",
                                                  "technique",
                                                  "builds_on",
                                                  "suite",
                                                  "problem",
                                                  "shape",
                                                  "precision",
                                                  "layout",
                                                  "prepacked",
                                                  "cache",
                                                  "threads",
                                                  "ranks",
                                                  "device",
                                                  "status",
                                                  "reason",
                                                  "verified",
                                                  "error_ratio",
                                                  "repetitions",
                                                  "median_s",
                                                  "ci_low_s",
                                                  "ci_high_s",
                                                  "min_s",
                                                  "prepare_s",
                                                  "flops",
                                                  "bytes",
                                                  "gflops_per_s",
                                                  "gbytes_per_s",
                                                  "busbw_gbytes_per_s",
                                                  "roof",
                                                  "percent_of_roof",
                                                  "speedup_vs_serial",
                                                  "speedup_vs_vendor",
                                                  "cycles",
                                                  "instructions",
                                                  "cpi",
                                                  "energy_j",
                                                  "repeat_command"};

const std::vector<std::string> samples_columns = {
    "primitive",  "direction", "variant",      "problem",     "threads",           "ranks",
    "repetition", "seconds",   "iterations",   "marked",      "calibration_ratio", "stolen_s",
    "tsc_cycles", "cycles",    "instructions", "cache_misses"};

const std::vector<std::string> step_columns = {"network", "use",      "mode",       "threads",
                                               "ranks",   "device",   "layer",      "phase",
                                               "variant", "median_s", "predicted_s"};

const std::vector<std::string> train_columns = {
    "step", "epoch", "seconds", "samples_per_s", "loss", "accuracy", "learning_rate", "mode"};

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : std::string{};
}

namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* doing) {
  throw std::runtime_error(fmt::format("{}: {}: {}", file.string(), doing, std::strerror(errno)));
}

// False, with errno set, when not all of it could be written.
bool write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(descriptor, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  return true;
}

// Replaces a file whole: written beside it, flushed, renamed.
void replace_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path beside = file.string() + ".part";
  const int descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(beside, "cannot be written");
  const bool written = write_all(descriptor, text) && fsync(descriptor) == 0;
  const int reason = errno;
  close(descriptor);
  errno = reason;
  if (!written) fail(beside, "cannot be written");
  std::filesystem::rename(beside, file);
}

}  // namespace

Table::Table(std::filesystem::path file, const std::vector<std::string>& columns)
    : file_(std::move(file)), columns_(columns) {
  if (std::ifstream in(file_, std::ios::binary); in) {
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::string header = csv_line(columns_);
    if (!text.starts_with(header) && !header.starts_with(text))
      throw std::runtime_error(fmt::format(
          "{}:1: its columns are not this version's; choose another folder", file_.string()));
    // A line without its newline was torn by a crash.
    const std::size_t last = text.rfind('\n'), whole = last == std::string::npos ? 0 : last + 1;
    if (whole != text.size()) std::filesystem::resize_file(file_, whole);
  }
  open_file();
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail(file_, "cannot be read");
  if (status.st_size == 0) append({columns_});
}

void Table::open_file() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(file_, "cannot be opened");
}

Table::~Table() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Table::append(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != columns_.size())
      throw std::logic_error(fmt::format("{}: a row of {} fields for {} columns", file_.string(),
                                         row.size(), columns_.size()));
    text += csv_line(row);
  }
  const off_t before = lseek(descriptor_, 0, SEEK_END);
  if (write_all(descriptor_, text)) return;
  const int reason = errno;
  // Should this fail too, the next opening cuts what is torn.
  [[maybe_unused]] const int cut = ftruncate(descriptor_, before);
  errno = reason;
  fail(file_, "cannot be written");
}

void Table::remove_rows(const std::function<bool(const CsvRow&)>& unwanted) {
  const CsvFile before(file_, columns_);
  std::string text = csv_line(columns_);
  for (const CsvRow& row : before.rows()) {
    if (unwanted(row)) continue;
    std::vector<std::string> fields;
    for (const std::string& column : columns_) fields.push_back(row.text(column));
    text += csv_line(fields);
  }
  replace_file(file_, text);
  open_file();
}

RunFolder::RunFolder(std::filesystem::path directory, bool resume)
    : directory_(std::move(directory)) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error)
    throw std::runtime_error(
        fmt::format("{}: cannot be made: {}", directory_.string(), error.message()));
  resumed_ = std::filesystem::exists(directory_ / "environment.json");
  if (resumed_ && !resume)
    throw std::runtime_error(
        fmt::format("{}: holds a run already; add --resume to go on with it, or choose "
                    "another folder with --out",
                    directory_.string()));
  const std::filesystem::path probe = directory_ / ".write_test";
  const int descriptor = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throw std::runtime_error(
        fmt::format("{}: cannot be written: {}", directory_.string(), std::strerror(errno)));
  close(descriptor);
  std::filesystem::remove(probe, error);
  const std::filesystem::space_info space = std::filesystem::space(directory_, error);
  if (!error && space.available < (std::uintmax_t{64} << 20U))
    throw std::runtime_error(fmt::format("{}: {} MiB are free; a run needs 64", directory_.string(),
                                         space.available >> 20U));
  for (const auto& [name, columns] : {std::pair{"summary.csv", &summary_columns},
                                      {"samples.csv", &samples_columns},
                                      {"step.csv", &step_columns},
                                      {"train.csv", &train_columns}})
    if (std::filesystem::exists(directory_ / name)) Table(directory_ / name, *columns);
}

void RunFolder::write_json(const std::string& name, const nlohmann::json& content) const {
  replace_file(directory_ / name, content.dump(1) + "\n");
}

nlohmann::json RunFolder::read_json(const std::string& name) const {
  std::ifstream in(directory_ / name);
  if (!in) return nullptr;
  nlohmann::json content = nlohmann::json::parse(in, nullptr, false);
  return content.is_discarded() ? nlohmann::json(nullptr) : content;
}

Table RunFolder::table(const std::string& name, const std::vector<std::string>& columns) const {
  return {directory_ / (name + ".csv"), columns};
}

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::filesystem::path default_run_directory() {
  std::string name = utc_time();
  for (char& c : name)
    if (c == ':') c = '-';
  return source_directory() / "results" / "local" / name;
}

}  // namespace stepladder
