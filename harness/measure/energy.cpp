#include "harness/measure/energy.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace stepladder {
namespace {

std::optional<double> read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

std::string read_word(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

// "intel-rapl:0", also on AMD; "intel-rapl:0:1" is a part of it.
bool is_zone(const std::string& name) {
  return name.starts_with("intel-rapl:") && name.find(':') == name.rfind(':');
}

}  // namespace

EnergyCounter::EnergyCounter(const std::filesystem::path& powercap) {
  std::error_code error;
  for (std::filesystem::directory_iterator zone(powercap, error), end; !error && zone != end;
       zone.increment(error)) {
    const std::filesystem::path folder = zone->path();
    // Zone psys includes the packages.
    if (!is_zone(folder.filename().string()) || !read_word(folder / "name").starts_with("package"))
      continue;
    errno = 0;
    if (!read_number(folder / "energy_uj")) {
      why_unavailable_ = fmt::format("{}: {}", (folder / "energy_uj").string(),
                                     errno != 0 ? std::strerror(errno) : "holds no number");
      packages_.clear();
      return;
    }
    packages_.push_back({.counter = folder / "energy_uj",
                         .range = read_number(folder / "max_energy_range_uj").value_or(0)});
  }
  if (packages_.empty())
    why_unavailable_ = fmt::format("{}: no RAPL zone of a CPU package", powercap.string());
}

void EnergyCounter::start() {
  for (Package& package : packages_) package.before = read_number(package.counter);
}

std::optional<double> EnergyCounter::stop() {
  if (packages_.empty()) return {};
  double microjoules = 0;
  for (const Package& package : packages_) {
    const std::optional<double> now = read_number(package.counter);
    if (!now || !package.before) return {};
    microjoules += *now - *package.before + (*now < *package.before ? package.range : 0);
  }
  return microjoules * 1e-6;
}

}  // namespace stepladder
