#include "kernels/common/opencl/plan.hpp"

#include <fmt/format.h>

#include <limits>
#include <mutex>
#include <stdexcept>
#include <tuple>

#include "kernels/common/opencl/devices.hpp"
#include "kernels/common/opencl/kept_handlers.hpp"

namespace stepladder::opencl {
namespace {

std::string name_of_error(cl_int error) {
#define STEPLADDER_CASE(name) \
  case name:                  \
    return #name
  switch (error) {
    STEPLADDER_CASE(CL_DEVICE_NOT_AVAILABLE);
    STEPLADDER_CASE(CL_COMPILER_NOT_AVAILABLE);
    STEPLADDER_CASE(CL_MEM_OBJECT_ALLOCATION_FAILURE);
    STEPLADDER_CASE(CL_OUT_OF_RESOURCES);
    STEPLADDER_CASE(CL_OUT_OF_HOST_MEMORY);
    STEPLADDER_CASE(CL_BUILD_PROGRAM_FAILURE);
    STEPLADDER_CASE(CL_DEVICE_PARTITION_FAILED);
    STEPLADDER_CASE(CL_INVALID_VALUE);
    STEPLADDER_CASE(CL_INVALID_DEVICE);
    STEPLADDER_CASE(CL_INVALID_HOST_PTR);
    STEPLADDER_CASE(CL_INVALID_BUILD_OPTIONS);
    STEPLADDER_CASE(CL_INVALID_PROGRAM_EXECUTABLE);
    STEPLADDER_CASE(CL_INVALID_KERNEL_NAME);
    STEPLADDER_CASE(CL_INVALID_ARG_INDEX);
    STEPLADDER_CASE(CL_INVALID_ARG_VALUE);
    STEPLADDER_CASE(CL_INVALID_ARG_SIZE);
    STEPLADDER_CASE(CL_INVALID_KERNEL_ARGS);
    STEPLADDER_CASE(CL_INVALID_WORK_GROUP_SIZE);
    STEPLADDER_CASE(CL_INVALID_WORK_ITEM_SIZE);
    STEPLADDER_CASE(CL_INVALID_GLOBAL_WORK_SIZE);
    STEPLADDER_CASE(CL_INVALID_BUFFER_SIZE);
    STEPLADDER_CASE(CL_INVALID_DEVICE_PARTITION_COUNT);
    default:
      return fmt::format("error {}", error);
  }
#undef STEPLADDER_CASE
}

std::mutex mutex;  // of what is made once and kept

// The device, or so many of its compute units.
cl_device_id part_of(const Description& device, int threads) {
  const auto id = static_cast<cl_device_id>(device.id);
  if (threads == (device.is_cpu ? device.compute_units : 1)) return id;
  if (!device.is_cpu)
    throw Unsupported(fmt::format("{} is no CPU: it runs with --threads 1", device.name));
  const cl_device_partition_property by_count[] = {CL_DEVICE_PARTITION_BY_COUNTS, threads,
                                                   CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  cl_device_id part = nullptr;
  if (const cl_int error = clCreateSubDevices(id, by_count, 1, &part, nullptr); error != CL_SUCCESS)
    throw Unsupported(fmt::format("{}, of {} compute units, has no part of {}: {}", device.name,
                                  device.compute_units, threads, name_of_error(error)));
  return part;
}

Session new_session(int threads) {
  const Description* chosen = chosen_device();
  if (chosen == nullptr) throw NotHere(why_no_device());
  cl_device_id device = part_of(*chosen, threads);
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  check(error, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
  check(error, "clCreateCommandQueue");
  return {device, context, queue, chosen->is_cpu};
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  return log.substr(0, log.find('\0'));
}

// Division and root are to be rounded as on the CPU, where the device can.
std::string with_rounding(const std::string& options, cl_device_id device) {
  cl_device_fp_config supported = 0;
  clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof supported, &supported, nullptr);
  return (supported & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0
             ? options + " -cl-fp32-correctly-rounded-divide-sqrt"
             : options;
}

cl_program built(const Session& session, const std::string& source, const std::string& options) {
  static std::map<std::tuple<cl_context, std::string, std::string>, cl_program> programs;
  const std::lock_guard lock(mutex);
  const KeptHandlers kept_handlers;
  cl_program& program = programs[{session.context, source, options}];
  if (program != nullptr) return program;
  const char* text = source.c_str();
  cl_int error = CL_SUCCESS;
  Owned<cl_program, clReleaseProgram> created(
      clCreateProgramWithSource(session.context, 1, &text, nullptr, &error));
  check(error, "clCreateProgramWithSource");
  error = clBuildProgram(created.get(), 1, &session.device,
                         with_rounding(options, session.device).c_str(), nullptr, nullptr);
  if (error != CL_SUCCESS)
    throw std::runtime_error(fmt::format("clBuildProgram: {}\n{}", name_of_error(error),
                                         build_log(created.get(), session.device)));
  return program = created.release();
}

}  // namespace

void check(cl_int error, const char* call) {
  if (error != CL_SUCCESS)
    throw std::runtime_error(fmt::format("{}: {}", call, name_of_error(error)));
}

const Session& session(int threads) {
  static std::map<int, Session> sessions;
  const std::lock_guard lock(mutex);
  const auto found = sessions.find(threads);
  return found != sessions.end() ? found->second
                                 : sessions.emplace(threads, new_session(threads)).first->second;
}

const Session& session(int threads, std::int64_t largest) {
  require_int_indices(largest);
  return session(threads);
}

Kernel::Kernel(const Session& session, const std::string& source, const char* name,
               const std::string& options)
    : session_(session) {
  cl_int error = CL_SUCCESS;
  kernel_.reset(clCreateKernel(built(session, source, options), name, &error));
  check(error, "clCreateKernel");
}

void Kernel::start(Range groups, Range items) {
  const std::size_t local[] = {items.columns, items.rows};
  const std::size_t global[] = {groups.columns * items.columns, groups.rows * items.rows};
  check(clEnqueueNDRangeKernel(session_.queue, kernel_.get(), 2, nullptr, global, local, 0, nullptr,
                               nullptr),
        "clEnqueueNDRangeKernel");
}

Operand::Operand(const Session& session, std::size_t bytes, Access access)
    : session_(session), bytes_(bytes), access_(access) {}

cl_mem Operand::before_kernels(const void* array) {
  if (bytes_ == 0) return nullptr;
  OwnedMemory& buffer = buffers_[session_.is_cpu ? array : nullptr];
  if (buffer == nullptr) {
    const cl_mem_flags flags = (access_ == Access::read ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE) |
                               (session_.is_cpu ? CL_MEM_USE_HOST_PTR : 0);
    cl_int error = CL_SUCCESS;
    buffer.reset(clCreateBuffer(session_.context, flags, bytes_,
                                session_.is_cpu ? const_cast<void*>(array) : nullptr, &error));
    check(error, "clCreateBuffer");
  }
  if (!session_.is_cpu && access_ != Access::write)
    check(clEnqueueWriteBuffer(session_.queue, buffer.get(), CL_FALSE, 0, bytes_, array, 0, nullptr,
                               nullptr),
          "clEnqueueWriteBuffer");
  return buffer.get();
}

void Operand::after_kernels(void* array) {
  if (bytes_ == 0 || session_.is_cpu || access_ == Access::read) return;
  check(clEnqueueReadBuffer(session_.queue, buffers_.at(nullptr).get(), CL_FALSE, 0, bytes_, array,
                            0, nullptr, nullptr),
        "clEnqueueReadBuffer");
}

Workspace::Workspace(const Session& session, std::size_t bytes) {
  if (bytes == 0) return;
  cl_int error = CL_SUCCESS;
  buffer_.reset(clCreateBuffer(session.context, CL_MEM_READ_WRITE, bytes, nullptr, &error));
  check(error, "clCreateBuffer");
}

void finish(const Session& session) { check(clFinish(session.queue), "clFinish"); }

void require_int_indices(std::int64_t elements) {
  constexpr std::int64_t most = std::numeric_limits<int>::max() - 65536;  // and a tile beyond
  if (elements > most)
    throw Unsupported(fmt::format("supports operands of at most {} elements", most));
}

}  // namespace stepladder::opencl
