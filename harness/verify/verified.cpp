#include "harness/verify/verified.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/io/file.hpp"
#include "harness/io/json_reader.hpp"
#include "harness/io/json_text.hpp"

namespace stepladder {
namespace {

// The .cu file of the variant, kernels/<primitive>/.../<name>.cu, and its digest; empty when it has
// none.
SourceDigest source_of(const Variant& variant, std::span<const SourceDigest> digests) {
  const std::string folder = fmt::format("kernels/{}/", variant.primitive);
  const std::string name = fmt::format("/{}.cu", variant.info->name);
  for (const SourceDigest& source : digests)
    if (source.file.starts_with(folder) && source.file.ends_with(name)) return source;
  return {};
}

// A text of the form of `pattern`: x stands for a hex digit, 0 for a decimal digit, any other
// character for itself.
std::string read_pattern(const JsonValue& value, std::string_view pattern, const char* expected) {
  std::string text = value.text();
  const auto fits = [](char c, char kind) {
    const bool decimal = c >= '0' && c <= '9';
    return kind == '0' ? decimal : kind == 'x' ? decimal || (c >= 'a' && c <= 'f') : c == kind;
  };
  if (!std::equal(text.begin(), text.end(), pattern.begin(), pattern.end(), fits))
    value.fail(expected);
  return text;
}

Verifications read_verifications(const JsonValue& value) {
  JsonObject rows(value);
  Verifications all;
  for (const std::string& file : rows.keys()) {
    JsonObject row(rows.get(file));
    all[file] = {read_pattern(row.get("digest"), "xxxxxxxxxxxx", "12 hex digits, 0-9 and a-f"),
                 read_pattern(row.get("date"), "0000-00-00", "a date such as \"2026-01-31\""),
                 row.get("device").text()};
    row.finish();
  }
  return all;
}

nlohmann::json as_json(const Verifications& results) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [file, result] : results)
    all[file] = {{"digest", result.digest}, {"date", result.date}, {"device", result.device}};
  return all;
}

// "NVIDIA H200, 2026-01-31; NVIDIA A100, 2026-02-01", the newest first.
std::string where_and_when(std::vector<Verification> results) {
  std::stable_sort(results.begin(), results.end(),
                   [](const Verification& a, const Verification& b) { return a.date > b.date; });
  std::string text;
  for (const Verification& result : results)
    text += fmt::format("{}{}, {}", text.empty() ? "" : "; ", result.device, result.date);
  return text;
}

}  // namespace

VerifiedFile::VerifiedFile(std::filesystem::path path) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_)) return;
  const JsonFile file(path_);
  JsonObject root(file.root());
  root.get("schema_version").whole_number(1, 1);
  passed_ = read_verifications(root.get("verified"));
  failed_ = read_verifications(root.get("failed"));
  root.finish();
}

void VerifiedFile::set_passed(const std::string& file, const Verification& result) {
  failed_.erase(file);
  passed_[file] = result;
}

void VerifiedFile::set_failed(const std::string& file, const Verification& result) {
  passed_.erase(file);
  failed_[file] = result;
}

void VerifiedFile::save() const {
  const nlohmann::json content = {
      {"schema_version", 1}, {"verified", as_json(passed_)}, {"failed", as_json(failed_)}};
  replace_file(path_, json_text(content, 1) + "\n");
}

std::vector<std::string> DeviceTally::record(const std::vector<Variant>& variants,
                                             std::span<const SourceDigest> digests,
                                             const std::string& device, const std::string& date,
                                             VerifiedFile& file) const {
  std::vector<std::string> not_passed;
  for (const Variant& variant : variants) {
    if (variant.info->place != Place::cuda) continue;
    const auto found = outcomes_.find(variant.name);
    const Outcome outcome = found == outcomes_.end() ? Outcome{} : found->second;
    const SourceDigest source = source_of(variant, digests);
    const Verification result{std::string(source.digest), date, device};
    const bool has_source = !source.file.empty();
    if (outcome.failed) {
      not_passed.push_back(fmt::format("{} {}: failed", variant.primitive, variant.name));
      if (has_source) file.set_failed(std::string(source.file), result);
    } else if (outcome.left_out || !outcome.passed || !has_source) {
      not_passed.push_back(fmt::format("{} {}: {}", variant.primitive, variant.name,
                                       !has_source
                                           ? fmt::format("has no file {}.cu", variant.info->name)
                                       : outcome.left_out ? "was not tried on every problem"
                                                          : "supports none of the problems"));
    } else {
      file.set_passed(std::string(source.file), result);
    }
  }
  return not_passed;
}

DeviceStatus::DeviceStatus(const std::filesystem::path& directory,
                           std::span<const SourceDigest> digests)
    : digests_(digests) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator i(directory, error), end; !error && i != end;
       i.increment(error))
    if (std::filesystem::exists(i->path() / "verified.json"))
      paths.push_back(i->path() / "verified.json");
  if (error)
    unreadable_ = fmt::format("{} cannot be read: {}", directory.string(), error.message());
  std::sort(paths.begin(), paths.end());
  for (std::filesystem::path& path : paths) files_.emplace_back(std::move(path));
}

std::string DeviceStatus::of(const Variant& variant) const {
  if (!unreadable_.empty()) return "not known whether it ran on a device: " + unreadable_;
  const SourceDigest source = source_of(variant, digests_);
  struct Found {
    std::vector<Verification> current, outdated;
  } passed, failed;
  const auto look_up = [&](const Verifications& results, Found& into) {
    const auto found = results.find(std::string(source.file));
    if (found == results.end()) return;
    const bool is_current = found->second.digest == source.digest;
    (is_current ? into.current : into.outdated).push_back(found->second);
  };
  for (const VerifiedFile& file : files_) {
    look_up(file.passed(), passed);
    look_up(file.failed(), failed);
  }
  // Results of the present source come before those of an earlier one, failures before passes.
  if (!failed.current.empty()) return "FAILED on " + where_and_when(failed.current);
  if (!passed.current.empty()) return "verified on " + where_and_when(passed.current);
  if (!passed.outdated.empty())
    return "changed since it was verified on " + where_and_when(passed.outdated);
  if (!failed.outdated.empty())
    return "changed since it failed on " + where_and_when(failed.outdated);
  return "never run on a device";
}

}  // namespace stepladder
