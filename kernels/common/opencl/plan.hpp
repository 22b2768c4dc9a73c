// What the plans of OpenCL rungs share: the device's queue, kernels compiled once per process, and
// buffers of operands.
//
// run() launches kernels and waits for them. A device that is no CPU has memory of its own: then
// run() also copies the operands there and the results back.
#pragma once

#include <CL/cl.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "kernels/common/variant.hpp"

namespace stepladder::opencl {

// Throws std::runtime_error, "clFinish: CL_OUT_OF_RESOURCES", unless `error` is CL_SUCCESS.
void check(cl_int error, const char* call);

template <auto release>
struct Release {
  template <class Object>
  void operator()(Object* object) const {
    release(object);
  }
};
template <class Id, auto release>
using Owned = std::unique_ptr<std::remove_pointer_t<Id>, Release<release>>;
using OwnedMemory = Owned<cl_mem, clReleaseMemObject>;

// The chosen device, or a part of it, and its queue, whose commands run in order.
struct Session {
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  bool is_cpu;  // its memory is that of the host
};

// Of as many compute units as `threads`, which on a CPU are threads. Made once and kept. Throws
// NotHere if there is no device, Unsupported if it cannot be divided.
const Session& session(int threads);
// Also throws Unsupported if the largest operand has more elements than kernels can index.
const Session& session(int threads, std::int64_t largest);

constexpr std::size_t float_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

// A struct of ints, as an argument of kernels.
template <class... Sizes>
std::array<cl_int, sizeof...(Sizes)> ints(Sizes... sizes) {
  return {static_cast<cl_int>(sizes)...};
}

struct Range {
  std::size_t columns, rows;
};

class Kernel {
 public:
  // The kernel `name` of a program, which is compiled for the session's device unless it was
  // before; `options`: of the compiler, such as "-DTILE=16". Throws std::runtime_error with the
  // build log.
  Kernel(const Session& session, const std::string& source, const char* name,
         const std::string& options);

  template <class... Arguments>
  void set(const Arguments&... arguments) {
    cl_uint i = 0;
    (set_argument(i++, std::span<const Arguments, 1>(&arguments, 1)), ...);
  }

  // Starts it on so many work-groups of so many work-items.
  void start(Range groups, Range items);

 private:
  template <class Argument>
  void set_argument(cl_uint i, std::span<const Argument, 1> value) {
    check(clSetKernelArg(kernel_.get(), i, value.size_bytes(), value.data()), "clSetKernelArg");
  }

  const Session& session_;
  Owned<cl_kernel, clReleaseKernel> kernel_;
};

enum class Access { read, write, read_and_write };

// An array of `bytes` bytes in host memory, as an argument of kernels.
class Operand {
 public:
  Operand(const Session& session, std::size_t bytes, Access access);

  // Its buffer, null if it has no bytes: on a CPU the array itself, otherwise memory of the device,
  // to which an operand that is read is copied. A buffer for another array than before is
  // allocated.
  cl_mem before_kernels(const void* array);
  // Copies what was written back to the array.
  void after_kernels(void* array);

 private:
  const Session& session_;
  std::size_t bytes_;
  Access access_;
  std::map<const void*, OwnedMemory> buffers_;  // by array; on a device that is no CPU one, of null
};

// An array that only kernels read and write.
class Workspace {
 public:
  Workspace(const Session& session, std::size_t bytes);
  cl_mem buffer() const { return buffer_.get(); }

 private:
  OwnedMemory buffer_;  // null: no bytes
};

// Waits for all that was started.
void finish(const Session& session);

// Kernels index elements with int. Throws Unsupported for a larger operand.
void require_int_indices(std::int64_t elements);

}  // namespace stepladder::opencl
