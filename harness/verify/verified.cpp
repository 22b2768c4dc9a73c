#include "harness/verify/verified.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/io/file.hpp"
#include "harness/io/json_reader.hpp"

namespace stepladder {
namespace {

using network::JsonFile;
using network::JsonObject;
using network::JsonValue;

std::string file_of(const Variant& variant) {
  return fmt::format("kernels/{}/{}.cu", variant.primitive, variant.info->name);
}

std::string digest_of(std::span<const SourceDigest> digests, const std::string& file) {
  for (const SourceDigest& source : digests)
    if (source.file == file) return std::string(source.digest);
  return {};
}

// A text in which every character stands where `pattern` has one of its kind: x for a hex digit, 0
// for a decimal one, itself for any other.
std::string read_shape(const JsonValue& value, std::string_view pattern, const char* expected) {
  const std::string text = value.text();
  const auto fits = [](char c, char kind) {
    const bool decimal = c >= '0' && c <= '9';
    return kind == '0' ? decimal : kind == 'x' ? decimal || (c >= 'a' && c <= 'f') : c == kind;
  };
  if (!std::equal(text.begin(), text.end(), pattern.begin(), pattern.end(), fits))
    value.fail(expected);
  return text;
}

DeviceProofs read_proofs(const JsonValue& value) {
  JsonObject rows = value.object();
  DeviceProofs all;
  for (const std::string& file : rows.keys()) {
    JsonObject row = rows.get(file).object();
    all[file] = {read_shape(row.get("digest"), "xxxxxxxxxxxx", "12 hex digits, 0-9 and a-f"),
                 read_shape(row.get("date"), "0000-00-00", "a date such as \"2026-01-31\""),
                 row.get("device").text()};
    row.finish();
  }
  return all;
}

nlohmann::json as_json(const DeviceProofs& proofs) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [file, proof] : proofs)
    all[file] = {{"digest", proof.digest}, {"date", proof.date}, {"device", proof.device}};
  return all;
}

// "NVIDIA H200, 2026-01-31; NVIDIA A100, 2026-02-01", the newest first.
std::string where_and_when(std::vector<DeviceProof> proofs) {
  std::stable_sort(proofs.begin(), proofs.end(),
                   [](const DeviceProof& a, const DeviceProof& b) { return a.date > b.date; });
  std::string text;
  for (const DeviceProof& proof : proofs)
    text += fmt::format("{}{}, {}", text.empty() ? "" : "; ", proof.device, proof.date);
  return text;
}

}  // namespace

VerifiedFile::VerifiedFile(std::filesystem::path path) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_)) return;
  const JsonFile file(path_);
  JsonObject root = file.root().object();
  root.get("schema_version").whole_number(1, 1);
  passed_ = read_proofs(root.get("verified"));
  failed_ = read_proofs(root.get("failed"));
  root.finish();
}

void VerifiedFile::set_passed(const std::string& file, const DeviceProof& proof) {
  failed_.erase(file);
  passed_[file] = proof;
}

void VerifiedFile::set_failed(const std::string& file, const DeviceProof& proof) {
  passed_.erase(file);
  failed_[file] = proof;
}

void VerifiedFile::save() const {
  const nlohmann::json content = {
      {"schema_version", 1}, {"verified", as_json(passed_)}, {"failed", as_json(failed_)}};
  const std::string text = content.dump(1) + "\n";
  data::write_atomically(path_, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
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
    const std::string source = file_of(variant), digest = digest_of(digests, source);
    if (outcome.failed) {
      not_passed.push_back(fmt::format("{} {}: failed", variant.primitive, variant.name));
      if (!digest.empty()) file.set_failed(source, {digest, date, device});
    } else if (outcome.left_out || !outcome.passed || digest.empty()) {
      not_passed.push_back(fmt::format("{} {}: {}", variant.primitive, variant.name,
                                       digest.empty()     ? "has no file " + source
                                       : outcome.left_out ? "was not tried on every problem"
                                                          : "took no problem"));
    } else {
      file.set_passed(source, {digest, date, device});
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
  const std::string source = file_of(variant), digest = digest_of(digests_, source);
  struct Found {
    std::vector<DeviceProof> current, outdated;
  } passed, failed;
  const auto look_up = [&](const DeviceProofs& proofs, Found& into) {
    if (const auto found = proofs.find(source); found != proofs.end())
      (found->second.digest == digest ? into.current : into.outdated).push_back(found->second);
  };
  for (const VerifiedFile& file : files_) {
    look_up(file.passed(), passed);
    look_up(file.failed(), failed);
  }
  // What is true of the source as it is comes first, and of that the bad news.
  if (!failed.current.empty()) return "FAILED on " + where_and_when(failed.current);
  if (!passed.current.empty()) return "verified on " + where_and_when(passed.current);
  if (!passed.outdated.empty())
    return "changed since it was verified on " + where_and_when(passed.outdated);
  if (!failed.outdated.empty())
    return "changed since it failed on " + where_and_when(failed.outdated);
  return "never run on a device";
}

}  // namespace stepladder
