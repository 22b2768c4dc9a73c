// Streams take turns in any order that their events allow, so that a missing event shows.
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

  // GPU 1 writes a number, which GPU 2 reads: whether it then finds it.
  bool finds(int seed, bool holds) {
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
      if (holds) cudaStreamWaitEvent(gpu_stream(2), event, 0);
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
  for (int seed = 0; seed < 20; ++seed) EXPECT_TRUE(finds(seed, true)) << seed;
}

TEST_F(Streams, WithoutAnEventAnyOrderComesUp) {
  ASSERT_GT(device_count(), 2);
  int found = 0;
  for (int seed = 0; seed < 20; ++seed) found += finds(seed, false) ? 1 : 0;
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 20);
}

TEST_F(Streams, AStreamBelongsToTheGpuItWasMadeOn) {
  ASSERT_GT(device_count(), 2);
  EXPECT_THROW(launch_on(gpu_stream(1), set, {1, 1}, values_, 1.0F), std::runtime_error);
}

}  // namespace
}  // namespace stepladder
