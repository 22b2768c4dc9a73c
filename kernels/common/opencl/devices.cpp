#include "kernels/common/opencl/devices.hpp"

#include <cstdlib>
#include <stdexcept>

#ifdef STEPLADDER_HAVE_OPENCL
#include <CL/cl.h>
#include <omp.h>
#include <sched.h>

#include "kernels/common/opencl/kept_handlers.hpp"
#endif

namespace stepladder::opencl {
namespace {

std::string named() {
  const char* text = std::getenv("STEPLADDER_OPENCL");
  return text != nullptr ? text : "";
}

#ifdef STEPLADDER_HAVE_OPENCL

// While it lives, the calling thread may run on the processors of all of OpenMP's places: threads
// that a platform starts inherit that. OpenMP has bound the first thread to one of them.
class OnAllPlaces {
 public:
  OnAllPlaces() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int place = 0; place < omp_get_num_places(); ++place) {
      std::vector<int> processors(static_cast<std::size_t>(omp_get_place_num_procs(place)));
      omp_get_place_proc_ids(place, processors.data());
      for (const int processor : processors) CPU_SET(processor, &all);
    }
    is_bound_ = CPU_COUNT(&all) > 0 && sched_getaffinity(0, sizeof before_, &before_) == 0 &&
                sched_setaffinity(0, sizeof all, &all) == 0;
  }
  ~OnAllPlaces() {
    if (is_bound_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OnAllPlaces(const OnAllPlaces&) = delete;
  OnAllPlaces& operator=(const OnAllPlaces&) = delete;

 private:
  cpu_set_t before_{};
  bool is_bound_ = false;
};

// clGetPlatformInfo or clGetDeviceInfo, of a text.
template <class Function, class Id>
std::string text_of(Function get, Id id, cl_uint what) {
  std::size_t bytes = 0;
  if (get(id, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  get(id, what, bytes, text.data(), nullptr);
  text.resize(bytes - 1);  // without the final zero
  return text;
}

template <class Value>
Value value_of(cl_device_id id, cl_device_info what) {
  Value value{};
  clGetDeviceInfo(id, what, sizeof value, &value, nullptr);
  return value;
}

std::vector<Description> find_devices() {
  const KeptHandlers kept_handlers;
  const OnAllPlaces on_all_places;
  std::vector<Description> all;
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return all;  // there are none
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
    for (cl_device_id id : ids)
      all.push_back(
          {.id = id,
           .platform = text_of(clGetPlatformInfo, platform, CL_PLATFORM_NAME),
           .name = text_of(clGetDeviceInfo, id, CL_DEVICE_NAME),
           .version = text_of(clGetDeviceInfo, id, CL_DEVICE_VERSION),
           .driver = text_of(clGetDeviceInfo, id, CL_DRIVER_VERSION),
           .compute_units = static_cast<int>(value_of<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS)),
           .is_cpu = (value_of<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0});
  }
  return all;
}

#else
std::vector<Description> find_devices() { return {}; }
#endif

const Description* choose() {
  if (named().empty()) return devices().empty() ? nullptr : &devices().front();
  std::string all;
  for (const Description& device : devices()) {
    const std::string text = device.platform + ": " + device.name;
    if (text.find(named()) != std::string::npos) return &device;
    all += (all.empty() ? "" : "; ") + text;
  }
  throw std::runtime_error("STEPLADDER_OPENCL=" + named() +
                           " is part of no OpenCL device's name; " +
                           (all.empty() ? "there is no device" : "there are: " + all));
}

}  // namespace

const std::vector<Description>& devices() {
  static const std::vector<Description> all = find_devices();
  return all;
}

namespace {
bool is_expected = false;
}
void expect_rungs() { is_expected = true; }
bool expects_rungs() { return is_expected; }

const Description* chosen_device() {
  static const Description* chosen = choose();
  return chosen;
}

std::string why_no_device() {
  return chosen_device() != nullptr ? "" : "no OpenCL device: install pocl-opencl-icd";
}

}  // namespace stepladder::opencl
