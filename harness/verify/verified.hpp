// Which CUDA rungs were proved on a device, and as what source. Most machines have no GPU, so a run on
// one leaves a file, results/<machine>/verified.json, and the program tells from the digests in it
// whether a rung is still what was proved there.
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

// Of a .cu file and of all headers of the project that it includes.
struct SourceDigest {
  std::string_view file, digest;
};
std::span<const SourceDigest> source_digests();  // the build's, see cmake/source_digests.cmake

// What `verify` found out about a rung on a device.
struct DeviceProof {
  std::string digest;  // of the source as it was built
  std::string date;    // "2026-01-31"
  std::string device;
};
using DeviceProofs = std::map<std::string, DeviceProof>;  // by .cu file

class VerifiedFile {
 public:
  // Reads the file, if there is one. Throws std::runtime_error naming file and line when it is damaged.
  explicit VerifiedFile(std::filesystem::path path);

  const DeviceProofs& passed() const { return passed_; }
  const DeviceProofs& failed() const { return failed_; }
  // The last word on a file counts: a rung that fails is no longer verified, whatever was before.
  void set_passed(const std::string& file, const DeviceProof& proof);
  void set_failed(const std::string& file, const DeviceProof& proof);
  void save() const;

 private:
  std::filesystem::path path_;
  DeviceProofs passed_, failed_;
};

// What a run of `verify` saw of the CUDA rungs of one primitive.
class DeviceTally {
 public:
  void passed(const Variant& variant) { outcomes_[variant.name].passed = true; }
  void failed(const Variant& variant) { outcomes_[variant.name].failed = true; }
  void left_out(const Variant& variant) { outcomes_[variant.name].left_out = true; }

  // Notes which of the variants passed every problem that they take, and which failed one. Those that
  // took none, or were not tried on one, stay as the file has them. Returns a sentence for each that
  // was not noted as passed.
  std::vector<std::string> record(const std::vector<Variant>& variants,
                                  std::span<const SourceDigest> digests, const std::string& device,
                                  const std::string& date, VerifiedFile& file) const;

 private:
  struct Outcome {
    bool passed = false, failed = false, left_out = false;
  };
  std::map<std::string, Outcome> outcomes_;
};

// All that is published: DIRECTORY/<machine>/verified.json.
class DeviceStatus {
 public:
  // Throws for a damaged file. A folder that cannot be read is told by every `of`.
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
