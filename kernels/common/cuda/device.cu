// The CUDA devices, in CUDA's order (CUDA_VISIBLE_DEVICES selects). CUDA is initialised by the
// first call of device(), and each further GPU by the first call of device(index).
#include <cstdlib>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/common/cuda/check.hpp"
#include "kernels/common/cuda/gpus.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/device.hpp"

namespace stepladder {
namespace {

__global__ void nothing() {}

// A CUDA graph. One launch for all kernels saves the host about 2 us per kernel, and the device
// idle time between kernels shorter than that. Independent nodes may run concurrently.
class CudaGraph final : public Recording {
 public:
  CudaGraph(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    cuda_check(status, "cudaGraphInstantiate", __FILE__, __LINE__);
  }
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void launch() override { STEPLADDER_CUDA_CHECK(cudaGraphLaunch(graph_, stream_)); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t graph_{};
};

// Lives as long as the process. Streams and events are not destroyed: at exit the driver may
// already be unloaded.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int gpu) : gpu_(gpu) {
    const CurrentGpu here(gpu_);
    STEPLADDER_CUDA_CHECK(cudaGetDeviceProperties(&properties_, gpu_));
    // Fails if the kernels were not built for this GPU.
    cudaFuncAttributes attributes;
    STEPLADDER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, nothing));
    STEPLADDER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    STEPLADDER_CUDA_CHECK(cudaStreamCreateWithFlags(&uploads_, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&start_, &stop_, &uploaded_})
      STEPLADDER_CUDA_CHECK(cudaEventCreate(event));
  }

  std::string name() const override { return properties_.name; }
  std::string pci_address() const override {
    char address[32];
    STEPLADDER_CUDA_CHECK(cudaDeviceGetPCIBusId(address, sizeof address, gpu_));
    return address;
  }
  std::size_t l2_bytes() const override {
    return static_cast<std::size_t>(properties_.l2CacheSize);
  }

  void* allocate(std::size_t bytes) override {
    const CurrentGpu here(gpu_);
    void* memory = nullptr;
    STEPLADDER_CUDA_CHECK(cudaMalloc(&memory, bytes));
    return memory;
  }

  // Called by destructors, so it does not throw. After a kernel has failed every call fails, which
  // synchronize() has reported.
  void release(void* memory) override { cudaFree(memory); }

  void* allocate_host(std::size_t bytes) override {
    void* memory = nullptr;
    STEPLADDER_CUDA_CHECK(cudaMallocHost(&memory, bytes));
    return memory;
  }
  void release_host(void* memory) override { cudaFreeHost(memory); }

  void upload(void* to_device, const void* from_host, std::size_t bytes) override {
    start_upload(to_device, from_host, bytes);
    synchronize();
  }
  void download(void* to_host, const void* from_device, std::size_t bytes) override {
    start_download(to_host, from_device, bytes);
    synchronize();
  }
  void start_upload(void* to_device, const void* from_host, std::size_t bytes) override {
    copy(to_device, from_host, bytes, cudaMemcpyHostToDevice, stream_);
  }
  void start_download(void* to_host, const void* from_device, std::size_t bytes) override {
    copy(to_host, from_device, bytes, cudaMemcpyDeviceToHost, stream_);
  }
  void start_copy(void* to_device, const void* from_device, std::size_t bytes) override {
    copy(to_device, from_device, bytes, cudaMemcpyDeviceToDevice, stream_);
  }
  void upload_concurrently(void* to_device, const void* from_host, std::size_t bytes) override {
    copy(to_device, from_host, bytes, cudaMemcpyHostToDevice, uploads_);
  }
  void await_uploads() override {
    const CurrentGpu here(gpu_);
    STEPLADDER_CUDA_CHECK(cudaEventRecord(uploaded_, uploads_));
    STEPLADDER_CUDA_CHECK(cudaStreamWaitEvent(stream_, uploaded_, 0));
  }

  void synchronize() override { STEPLADDER_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

  void start_timer() override {
    const CurrentGpu here(gpu_);
    STEPLADDER_CUDA_CHECK(cudaEventRecord(start_, stream_));
  }
  double stop_timer() override {
    const CurrentGpu here(gpu_);
    STEPLADDER_CUDA_CHECK(cudaEventRecord(stop_, stream_));
    return seconds_between(start_, stop_);
  }
  void mark(std::size_t number) override {
    const CurrentGpu here(gpu_);
    while (marks_.size() <= number) STEPLADDER_CUDA_CHECK(cudaEventCreate(&marks_.emplace_back()));
    // External: the time of an event in a graph may be queried from outside the graph.
    STEPLADDER_CUDA_CHECK(cudaEventRecordWithFlags(
        marks_[number], stream_, is_recording_ ? cudaEventRecordExternal : cudaEventRecordDefault));
  }
  double seconds_between(std::size_t first, std::size_t second) override {
    return seconds_between(marks_.at(first), marks_.at(second));
  }

  std::unique_ptr<Recording> record(std::span<const Task> tasks) override {
    // ThreadLocal: calls of this thread that cannot be captured fail.
    STEPLADDER_CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    is_recording_ = true;
    std::exception_ptr failure;
    try {
      capture(tasks);
    } catch (...) {
      failure = std::current_exception();
    }
    is_recording_ = false;
    cudaGraph_t graph{};
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    if (failure != nullptr) {
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaGetLastError();  // cleared for the next check
      std::rethrow_exception(failure);
    }
    cuda_check(status, "cudaStreamEndCapture", __FILE__, __LINE__);
    return std::make_unique<CudaGraph>(graph, stream_);
  }

  cudaStream_t stream() const { return stream_; }
  int compute_capability() const { return 10 * properties_.major + properties_.minor; }
  std::size_t shared_memory() const { return properties_.sharedMemPerBlockOptin; }
  int multiprocessors() const { return properties_.multiProcessorCount; }
  std::size_t memory_bytes() const { return properties_.totalGlobalMem; }

 private:
  // All tasks are captured from the stream that kernels go to. Before each task the stream's
  // capture dependencies are replaced by the last nodes of the tasks that it depends on.
  void capture(std::span<const Task> tasks) {
    using Nodes = std::set<cudaGraphNode_t>;
    std::vector<Nodes> last;  // of each task
    for (const Task& task : tasks) {
      Nodes before;
      for (const std::size_t earlier : task.after)
        before.insert(last.at(earlier).begin(), last.at(earlier).end());
      std::vector<cudaGraphNode_t> nodes(before.begin(), before.end());
      STEPLADDER_CUDA_CHECK(cudaStreamUpdateCaptureDependencies(
          stream_, nodes.data(), nullptr, nodes.size(), cudaStreamSetCaptureDependencies));
      task.start();
      cudaStreamCaptureStatus status{};
      const cudaGraphNode_t* end = nullptr;
      std::size_t count = 0;
      STEPLADDER_CUDA_CHECK(
          cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &end, nullptr, &count));
      last.emplace_back(end, end + count);
    }
  }

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
            cudaStream_t stream) {
    const CurrentGpu here(gpu_);
    STEPLADDER_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, stream));
  }
  static double seconds_between(cudaEvent_t first, cudaEvent_t second) {
    STEPLADDER_CUDA_CHECK(cudaEventSynchronize(second));
    float milliseconds = 0;
    STEPLADDER_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, first, second));
    return double{milliseconds} * 1e-3;
  }

  int gpu_;
  cudaDeviceProp properties_{};
  cudaStream_t stream_{}, uploads_{};
  cudaEvent_t start_{}, stop_{}, uploaded_{};
  std::vector<cudaEvent_t> marks_;
  bool is_recording_ = false;
};

CudaDevice* cuda_device = nullptr;  // GPU 0, set by find

std::string version(int number) {  // 13020 is 13.2
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

Device* find(std::string& why) {
  int driver = 0, devices = 0;
  cudaDriverGetVersion(&driver);  // stays 0 where no driver is installed
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (driver == 0 || status == cudaErrorNoDevice || (status == cudaSuccess && devices == 0)) {
    why = "no CUDA device";
  } else if (status != cudaSuccess) {
    why = std::string(cudaGetErrorString(status)) + " (the driver is for CUDA " + version(driver) +
          ", this program for " + version(CUDART_VERSION) + ")";
  } else {
    try {
      STEPLADDER_CUDA_CHECK(cudaSetDevice(0));
      cuda_device = new CudaDevice(0);  // never destroyed
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  return cuda_device;
}

int count() {
  int devices = 0;
  STEPLADDER_CUDA_CHECK(cudaGetDeviceCount(&devices));
  return devices;
}

CudaDevice& gpu(int index) {
  static auto& further = *new std::map<int, CudaDevice>;  // never destroyed
  return index == 0 ? *cuda_device : further.try_emplace(index, index).first->second;
}

Device* at(int index) { return &gpu(index); }

const bool registered = (register_devices({find, count, at}), true);

}  // namespace

cudaStream_t cuda_stream() { return cuda_device->stream(); }
cudaStream_t gpu_stream(int index) { return gpu(index).stream(); }

int cuda_multiprocessors() { return cuda_device->multiprocessors(); }
std::size_t cuda_memory_bytes() { return cuda_device->memory_bytes(); }

void require_cuda() {
  if (device() == nullptr) throw NotHere(device_status());
}

void require_compute_capability(int least) {
  require_cuda();
  if (cuda_device->compute_capability() >= least) return;
  throw NotHere("needs a GPU of compute capability " + std::to_string(least / 10) + "." +
                std::to_string(least % 10) + "; this is " + cuda_device->name());
}

void require_hopper() {
  require_compute_capability(90);
  if (cuda_device->compute_capability() < 100) return;
  throw NotHere("needs a Hopper GPU, the only generation with wgmma; this is " +
                cuda_device->name());
}

void require_shared_memory(std::size_t bytes) {
  require_cuda();
  if (cuda_device->shared_memory() >= bytes) return;
  throw NotHere("needs " + std::to_string(bytes) + " bytes of shared memory per block; " +
                cuda_device->name() + " has " + std::to_string(cuda_device->shared_memory()));
}

void require_tf32() {
  require_compute_capability(80);
  const char* setting = std::getenv("NVIDIA_TF32_OVERRIDE");  // obeyed by all NVIDIA libraries
  if (setting != nullptr && std::string(setting) == "0")
    throw NotHere("NVIDIA_TF32_OVERRIDE=0 forbids TF32");
}

}  // namespace stepladder
