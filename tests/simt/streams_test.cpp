// Streams run in any order that their events allow, so that a missing event is detected.
#include "tests/simt/streams.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "kernels/common/cuda/gpus.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/device.hpp"
#include "tests/error_messages.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {
namespace {

__global__ void set(float* at, float value) { *at = value; }
__global__ void add_to(const float* from, float* to) { *to += *from; }

class Streams : public testing::Test {
 protected:
  Streams() { cudaMalloc(reinterpret_cast<void**>(&values_), 2 * sizeof(float)); }
  ~Streams() override { cudaFree(values_); }

  // GPU 1 writes a number and GPU 2 reads it. Returns whether GPU 2 reads the new value.
  bool reads_new_value(int seed, bool waits) {
    const simt::DeferredStreams deferred;
    simt::seed_order(static_cast<unsigned long long>(seed));
    values_[0] = values_[1] = 0;
    device(1), device(2);
    cudaEvent_t event{};
    {
      const CurrentGpu here(1);
      cudaEventCreate(&event);
      launch_on(gpu_stream(1), set, {1, 1}, values_, 7.0F);
      STEPLADDER_CUDA_CHECK(cudaEventRecord(event, gpu_stream(1)));
    }
    {
      const CurrentGpu here(2);
      if (waits) cudaStreamWaitEvent(gpu_stream(2), event, 0);
      launch_on(gpu_stream(2), add_to, {1, 1}, values_, values_ + 1);
    }
    device(2)->synchronize();
    cudaEventDestroy(event);
    return values_[1] == 7.0F;
  }

  float* values_ = nullptr;
};

TEST_F(Streams, AnEventOrdersThem) {
  ASSERT_GT(device_count(), 2);
  for (int seed = 0; seed < 20; ++seed) EXPECT_TRUE(reads_new_value(seed, true)) << seed;
}

TEST_F(Streams, WithoutAnEventBothOrdersOccur) {
  ASSERT_GT(device_count(), 2);
  int new_values = 0;
  for (int seed = 0; seed < 20; ++seed) new_values += reads_new_value(seed, false) ? 1 : 0;
  EXPECT_GT(new_values, 0);
  EXPECT_LT(new_values, 20);
}

TEST_F(Streams, AStreamBelongsToTheGpuItWasMadeOn) {
  ASSERT_GT(device_count(), 2);
  EXPECT_THROW(launch_on(gpu_stream(1), set, {1, 1}, values_, 1.0F), std::runtime_error);
}

}  // namespace
}  // namespace stepladder
