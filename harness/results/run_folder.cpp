#include "harness/results/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "harness/io/file.hpp"
#include "harness/io/json_text.hpp"
#include "harness/results/result_columns.hpp"

namespace stepladder {
namespace {

// Throws when the folder takes no files, or the disk is nearly full.
void require_space(const std::filesystem::path& directory) {
  const std::filesystem::path probe = directory / ".write_test";
  const int descriptor = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throw std::runtime_error(
        fmt::format("{}: cannot be written: {}", directory.string(), std::strerror(errno)));
  close(descriptor);
  std::error_code error;
  std::filesystem::remove(probe, error);
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (!error && space.available < (std::uintmax_t{64} << 20U))
    throw std::runtime_error(fmt::format("{}: {} MiB are free; a run needs 64", directory.string(),
                                         space.available >> 20U));
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path directory, bool resume)
    : directory_(std::move(directory)) {
  std::error_code error;
  made_ = std::filesystem::create_directories(directory_, error);
  if (error)
    throw std::runtime_error(
        fmt::format("{}: cannot be made: {}", directory_.string(), error.message()));
  resumed_ = std::filesystem::exists(directory_ / "environment.json");
  if (resumed_ && !resume)
    throw std::runtime_error(
        fmt::format("{}: holds a run already; add --resume to continue it, or choose "
                    "another folder with --out",
                    directory_.string()));
  require_space(directory_);
  for (const Columns* columns : all_columns())
    if (has(*columns)) table(*columns);  // which checks its columns
}

RunFolder::~RunFolder() {
  if (resumed_ || std::uncaught_exceptions() == exceptions_) return;
  std::error_code error;  // what cannot be removed stays
  for (const Columns* columns : all_columns()) {
    const std::uintmax_t bytes = std::filesystem::file_size(file_of(*columns), error);
    if (!error && bytes > csv_line(columns->names()).size()) return;
  }
  std::filesystem::remove(directory_ / "environment.json", error);
  if (!made_) return;
  for (const Columns* columns : all_columns()) std::filesystem::remove(file_of(*columns), error);
  for (const char* name :
       {"columns.json", "ceilings.json", "links.json", "rungs.json", "benchmark.json"})
    std::filesystem::remove(directory_ / name, error);
  std::filesystem::remove(directory_, error);
}

void RunFolder::write_text(const std::string& name, const std::string& text) const {
  replace_file(directory_ / name, text);
}

void RunFolder::write_json(const std::string& name, const nlohmann::json& content) const {
  write_text(name, json_text(content, 1) + "\n");
}

nlohmann::json RunFolder::read_json(const std::string& name) const {
  nlohmann::json content = try_parse_json(text_in(directory_ / name));
  return content.is_discarded() ? nlohmann::json(nullptr) : content;
}

std::filesystem::path RunFolder::file_of(const Columns& columns) const {
  return directory_ / (columns.name() + ".csv");
}

bool RunFolder::has(const Columns& columns) const {
  return std::filesystem::exists(file_of(columns));
}

Table RunFolder::table(const Columns& columns) const { return {file_of(columns), columns.names()}; }

CsvFile RunFolder::read(const Columns& columns) const {
  return {file_of(columns), columns.names()};
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
