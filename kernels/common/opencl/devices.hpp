// The OpenCL devices of this machine, for files that include no OpenCL header.
#pragma once

#include <string>
#include <vector>

namespace stepladder::opencl {

struct Description {
  void* id;  // a cl_device_id
  std::string platform, name, version, driver;
  int compute_units;
  bool is_cpu;  // its memory is that of the host
};

// Those of all platforms, in their order; none in a build without OpenCL. The first call opens the
// platforms, which may start threads: call it neither in vain nor before fork().
const std::vector<Description>& devices();

// Whether the command runs OpenCL rungs, as expect_rungs() said: then environment.json lists the
// devices.
void expect_rungs();
bool expects_rungs();

// The device of the OpenCL rungs: the first whose "platform: device" contains the text of
// STEPLADDER_OPENCL, or the first; null if there is none. Throws std::runtime_error if the variable
// names none.
const Description* chosen_device();

std::string why_no_device();  // empty, or "no OpenCL device: install pocl-opencl-icd"

}  // namespace stepladder::opencl
