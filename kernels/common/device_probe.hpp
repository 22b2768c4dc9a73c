// Probes of the features of a device on which the rungs build: each runs a small kernel and checks
// its result on the host.
#pragma once

#include <span>
#include <string>

namespace stepladder {

struct DeviceProbe {
  const char* feature;
  const char* rungs;  // that rely on it
  // Returns a remark, usually empty. Throws NotHere, or std::runtime_error with what was expected
  // and what was found.
  std::string (*run)();
};

// Those that may hang or lose the device come last. Empty in a build without CUDA.
std::span<const DeviceProbe> device_probes();
// Called by a device's file before main().
void register_device_probes(std::span<const DeviceProbe> probes);

struct ProbeOutcome {
  bool failed = false;
  std::string text;  // "ok", "FAILED: …", "not on this device: …", "not tried: …"
};

// lost_by: the feature by whose failure the device was lost, if it was; later probes are not tried.
ProbeOutcome run_probe(const DeviceProbe& probe, std::string& lost_by);

}  // namespace stepladder
