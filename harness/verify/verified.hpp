// Which CUDA rungs were verified on a device, and with which source. Most machines have no GPU; a
// run on one writes results/<machine>/verified.json. Its digests show whether a rung has changed
// since.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/problem/case.hpp"

namespace stepladder {

// Digest of a .cu file together with all headers of the project that it includes.
struct SourceDigest {
  std::string_view file, digest;
};
std::span<const SourceDigest> source_digests();  // of this build, see cmake/source_digests.cmake

// A result of `verify` for a rung on a device.
struct Verification {
  std::string digest;  // of the source
  std::string date;    // "2026-01-31"
  std::string device;
};
using Verifications = std::map<std::string, Verification>;  // by .cu file

class VerifiedFile {
 public:
  // Reads the file, if there is one. Throws std::runtime_error naming file and line when it is
  // damaged.
  explicit VerifiedFile(std::filesystem::path path);

  const Verifications& passed() const { return passed_; }
  const Verifications& failed() const { return failed_; }
  // Each replaces an earlier result of the file, passed or failed.
  void set_passed(const std::string& file, const Verification& result);
  void set_failed(const std::string& file, const Verification& result);
  void save() const;

 private:
  std::filesystem::path path_;
  Verifications passed_, failed_;
};

// The results of one run of `verify` for the CUDA rungs of one primitive.
class DeviceTally {
 public:
  void passed(const Variant& variant) { outcomes_[variant.name].passed = true; }
  void failed(const Variant& variant) { outcomes_[variant.name].failed = true; }
  void left_out(const Variant& variant) { outcomes_[variant.name].left_out = true; }

  // Records in the file which variants passed all problems that they support, and which failed one.
  // Entries of variants that support none, or were not tried on all, stay. Returns a sentence for
  // each variant that is not recorded as passed.
  std::vector<std::string> record(const std::vector<Variant>& variants,
                                  std::span<const SourceDigest> digests, const std::string& device,
                                  const std::string& date, VerifiedFile& file) const;

 private:
  struct Outcome {
    bool passed = false, failed = false, left_out = false;
  };
  std::map<std::string, Outcome> outcomes_;
};

// All published results: DIRECTORY/<machine>/verified.json.
class DeviceStatus {
 public:
  // Throws for a damaged file. When the directory cannot be read, of() reports it.
  DeviceStatus(const std::filesystem::path& directory, std::span<const SourceDigest> digests);

  // "verified on NVIDIA H200, 2026-01-31", or "FAILED on …", "changed since it was verified on …",
  // "never run on a device".
  std::string of(const Variant& variant) const;

 private:
  std::string unreadable_;
  std::vector<VerifiedFile> files_;
  std::span<const SourceDigest> digests_;
};

}  // namespace stepladder
