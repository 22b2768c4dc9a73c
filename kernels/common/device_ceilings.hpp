// Measured ceilings of a device, the roofs of its rows.
#pragma once

#include <vector>

namespace stepladder {

struct DeviceCeiling {
  // fma_peak: fp32; tf32_peak: tensor cores, left out where they have no TF32; stream_copy: bytes
  // read plus bytes written
  const char* name;
  const char* unit;  // GFLOP/s or GB/s
  double value;
};

std::vector<DeviceCeiling> measure_device_ceilings();  // empty without a device
// Called by a device's file before main().
void register_device_ceilings(std::vector<DeviceCeiling> (*measure)());

}  // namespace stepladder
