// The emulator computes what CUDA specifies and detects kernels that break its rules. Each faulty
// kernel is tested next to the same kernel without the fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/common/cuda/async_copy.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/mma.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/matmul.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

constexpr unsigned threads = 128;

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

// The message of the exception that the kernel throws; empty if it throws none.
template <class Kernel, class... Arguments>
std::string launch_error(Kernel kernel, const Grid& grid, Arguments... arguments) {
  try {
    launch(kernel, grid, arguments...);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// --- barriers ------------------------------------------------------------------------------------

enum class Fault { none, present };

// Each block reverses its chunk of x. Fault: a thread may read before another has written.
template <Fault missing_barrier>
__global__ void reverse(float* x) {
  __shared__ float buffer[threads];
  float* chunk = x + blockIdx.x * threads;
  buffer[threadIdx.x] = chunk[threadIdx.x];
  if constexpr (missing_barrier == Fault::none) __syncthreads();
  chunk[threadIdx.x] = buffer[threads - 1 - threadIdx.x];
}

template <Fault fault>
bool reverses() {
  constexpr unsigned blocks = 5;
  std::vector<float> x = counted(blocks * threads), expected = x;
  for (unsigned b = 0; b < blocks; ++b)
    std::reverse(expected.begin() + b * threads, expected.begin() + (b + 1) * threads);
  launch(reverse<fault>, {blocks, threads}, x.data());
  return x == expected;
}

TEST(Emulator, DetectsAMissingBarrier) {
  EXPECT_TRUE(reverses<Fault::none>());
  EXPECT_FALSE(reverses<Fault::present>());
}

// A running sum over tiles. Fault: a thread writes the next tile while others still read this one.
template <Fault missing_barrier>
__global__ void sum_of_tiles(const float* x, float* sum, int tiles) {
  __shared__ float tile[threads];
  float total = 0;
  for (int t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = x[t * threads + threadIdx.x];
    __syncthreads();
    for (const float value : tile) total += value;
    if constexpr (missing_barrier == Fault::none) __syncthreads();
  }
  sum[threadIdx.x] = total;
}

template <Fault fault>
bool sums_tiles() {
  constexpr int tiles = 4;
  const std::vector<float> x = counted(tiles * threads);
  std::vector<float> sum(threads);
  launch(sum_of_tiles<fault>, {1, threads}, x.data(), sum.data(), tiles);
  const float expected = std::accumulate(x.begin(), x.end(), 0.0F);
  return std::all_of(sum.begin(), sum.end(), [&](float got) { return got == expected; });
}

TEST(Emulator, DetectsATileThatIsOverwrittenTooEarly) {
  EXPECT_TRUE(sums_tiles<Fault::none>());
  EXPECT_FALSE(sums_tiles<Fault::present>());
}

__global__ void half_of_the_threads_wait() {
  if (threadIdx.x < threads / 2) __syncthreads();
}

__global__ void two_barriers_for_one() {
  if (threadIdx.x < threads / 2)
    __syncthreads();
  else
    __syncthreads();
}

TEST(Emulator, RejectsABarrierThatNotAllThreadsReach) {
  EXPECT_TRUE(says(launch_error(half_of_the_threads_wait, {2, threads}),
                   {"waits forever", "at the barrier", "emulator_test.cpp",
                    "64 of 128 threads are at a barrier, 64 have ended"}));
  EXPECT_TRUE(
      says(launch_error(two_barriers_for_one, {1, threads}), {"another", "emulator_test.cpp"}));
}

// --- warps ---------------------------------------------------------------------------------------

__global__ void sum_of_each_warp(const float* x, float* sum) {
  float value = x[threadIdx.x];
  for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(0xffffffffU, value, other);
  sum[threadIdx.x] = value;
}

__global__ void shuffles(int* up, int* down, int* from_5, unsigned* odd) {
  const int lane = static_cast<int>(threadIdx.x);
  up[lane] = __shfl_up_sync(0xffffffffU, lane, 3U, 16);
  down[lane] = __shfl_down_sync(0xffffffffU, lane, 3U, 16);
  from_5[lane] = __shfl_sync(0xffffffffU, lane, 5, 8);
  odd[lane] = __ballot_sync(0xffffffffU, lane % 2 == 1);
}

TEST(Emulator, ShufflesWithinWarps) {
  const std::vector<float> x = counted(threads);
  std::vector<float> sum(threads);
  launch(sum_of_each_warp, {1, threads}, x.data(), sum.data());
  for (std::size_t i = 0; i < threads; ++i) {
    const auto warp = x.begin() + static_cast<std::ptrdiff_t>(i / 32 * 32);
    EXPECT_EQ(sum[i], std::accumulate(warp, warp + 32, 0.0F));
  }
  std::vector<int> up(32), down(32), from_5(32);
  std::vector<unsigned> odd(32);
  launch(shuffles, {1, 32}, up.data(), down.data(), from_5.data(), odd.data());
  for (int lane = 0; lane < 32; ++lane) {
    const auto i = static_cast<std::size_t>(lane);
    EXPECT_EQ(up[i], lane % 16 < 3 ? lane : lane - 3);
    EXPECT_EQ(down[i], lane % 16 >= 13 ? lane : lane + 3);
    EXPECT_EQ(from_5[i], lane / 8 * 8 + 5);
    EXPECT_EQ(odd[i], 0xaaaaaaaaU);
  }
}

__global__ void one_lane_does_not_arrive() {
  if (threadIdx.x != 7) __syncwarp();
}

__global__ void lanes_in_two_places() {
  if (threadIdx.x < 16)
    __syncwarp();
  else
    __shfl_sync(0xffffffffU, 1, 0);
}

TEST(Emulator, RejectsAnIncompleteWarp) {
  EXPECT_TRUE(says(launch_error(one_lane_does_not_arrive, {1, 32}),
                   {"waits forever", "its warp in __syncwarp"}));
  EXPECT_TRUE(
      says(launch_error(lanes_in_two_places, {1, 32}), {"__syncwarp", "__shfl_sync", "lane"}));
}

// Fault: relies on the lockstep of a warp.
template <Fault missing_barrier>
__global__ void swap_neighbours(float* x) {
  __shared__ float buffer[32];
  buffer[threadIdx.x] = x[threadIdx.x];
  if constexpr (missing_barrier == Fault::none) __syncwarp();
  x[threadIdx.x] = buffer[threadIdx.x ^ 1];
}

TEST(Emulator, DoesNotRunWarpsInLockstep) {
  std::vector<float> x = counted(32), y = x, expected = x;
  for (std::size_t i = 0; i < 32; ++i) expected[i] = x[i ^ 1];
  launch(swap_neighbours<Fault::none>, {1, 32}, x.data());
  launch(swap_neighbours<Fault::present>, {1, 32}, y.data());
  EXPECT_EQ(x, expected);
  EXPECT_NE(y, expected);
}

// --- shared memory -------------------------------------------------------------------------------

// Fault: relies on shared memory that is zero, or as the previous block left it.
__global__ void reads_uninitialised_memory(float* seen) {
  __shared__ float fresh[threads];
  seen[blockIdx.x * threads + threadIdx.x] =
      fresh[threadIdx.x] + dynamic_shared<float>()[threadIdx.x];
  __syncthreads();
  fresh[threadIdx.x] = dynamic_shared<float>()[threadIdx.x] = 1;
}

TEST(Emulator, FillsSharedMemoryWithNaNBeforeEachBlock) {
  std::vector<float> seen(3 * threads);
  launch(reads_uninitialised_memory, {3, threads, threads * sizeof(float)}, seen.data());
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](float value) { return std::isnan(value); }));
}

__global__ void writes_dynamic_shared(unsigned count) {
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) dynamic_shared<float>()[i] = 0;
}

TEST(Emulator, DetectsAWritePastDynamicSharedMemory) {
  EXPECT_EQ(launch_error(writes_dynamic_shared, {1, threads, 400}, 100U), "");
  EXPECT_TRUE(says(launch_error(writes_dynamic_shared, {1, threads, 400}, 101U),
                   {"out of the bounds of its 400 bytes of dynamic shared memory"}));
}

TEST(Emulator, AcceptsLaunchesWithinTheLimitsOfTheDevice) {
  EXPECT_EQ(launch_error(writes_dynamic_shared, {1, 1024, 200 << 10}, 50U << 10), "");
  EXPECT_NE(launch_error(writes_dynamic_shared, {1, 1024, 228 << 10}, 1U), "");
  EXPECT_NE(launch_error(writes_dynamic_shared, {1, 1025}, 0U), "");
  EXPECT_NE(launch_error(writes_dynamic_shared, {0, 32}, 0U), "");
  EXPECT_NE(launch_error(writes_dynamic_shared, {{1, 65536}, 32}, 0U), "");
}

// --- global memory -------------------------------------------------------------------------------

__global__ void copy_vectors(const float* from, float* to) {
  const auto* source = reinterpret_cast<const float4*>(from);
  reinterpret_cast<float4*>(to)[threadIdx.x] = source[threadIdx.x];
}

TEST(Emulator, RejectsAMisalignedVector) {
  alignas(16) float from[4 * 32 + 4]{}, to[4 * 32];
  EXPECT_EQ(launch_error(copy_vectors, {1, 32}, from, to), "");
  EXPECT_TRUE(says(launch_error(copy_vectors, {1, 32}, from + 1, to), {"16 bytes", "4 bytes off"}));
}

// Writes rows of C in vectors of 4 elements, even if n is no multiple of 4.
__global__ void ones_in_whole_vectors(matmul::Problem p, matmul::Operands o) {
  for (std::int64_t j = 0; j < round_up(p.n, 4); ++j) o.c[threadIdx.x * p.n + j] = 1;
}

void product_of_ones(const matmul::Problem& p, const matmul::Operands& o) {
  launch(ones_in_whole_vectors, {1, static_cast<unsigned>(p.m)}, p, o);
}

TEST(Emulator, DetectsAWritePastAnOperand) {
  EXPECT_TRUE(is_caught<matmul::Matmul>(
      {.m = 3, .n = 7, .k = 2},
      unregistered<matmul::Matmul>("past_the_end", make_cuda_plan<matmul::Matmul, product_of_ones>),
      "out of bounds"));
}

__global__ void count_threads(float* sum) { atomicAdd(sum, 1.0F); }

__global__ void record_order(int* order, int* next) {
  order[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

TEST(Emulator, RunsEveryThreadOnceInRandomOrder) {
  float sum = 0;
  launch(count_threads, {{3, 4, 5}, {8, 4, 2}}, &sum);
  EXPECT_EQ(sum, 3 * 4 * 5 * 8 * 4 * 2);
  std::vector<int> order(4 * threads);
  int next = 0;
  launch(record_order, {4, threads}, order.data(), &next);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), order.size());
}

__global__ void count_with_atomic_inc(unsigned* next, unsigned* seen) {
  atomicAdd(seen + atomicInc(next, 2), 1U);
}

TEST(Emulator, AtomicIncWrapsToZero) {
  unsigned next = 0;
  std::vector<unsigned> seen(3);
  launch(count_with_atomic_inc, {3, 10}, &next, seen.data());
  EXPECT_EQ(seen, (std::vector<unsigned>{10, 10, 10}));
  EXPECT_EQ(next, 0U);
}

// --- asynchronous copies -------------------------------------------------------------------------

enum class CopyFault { none, missing_wait, waits_too_little, missing_barrier, overwrites };

// A running sum as above, over tiles that are prefetched two ahead into a ring of three.
template <CopyFault fault>
__global__ void sum_of_copied_tiles(const float* x, float* sum, int tiles) {
  constexpr int ring = 3;
  __shared__ __align__(16) float tile[ring][threads];
  const auto fetch = [&](int t) {
    if (t < tiles && threadIdx.x < threads / 4)
      copy_async<16>(&tile[t % ring][4 * threadIdx.x], x + t * threads + 4 * threadIdx.x);
    commit_copies();
  };
  fetch(0);
  fetch(1);
  float total = 0;
  for (int t = 0; t < tiles; ++t) {
    if constexpr (fault == CopyFault::waits_too_little)
      wait_for_copies<2>();
    else if constexpr (fault != CopyFault::missing_wait)
      wait_for_copies<1>();
    if constexpr (fault != CopyFault::missing_barrier) __syncthreads();
    fetch(t + (fault == CopyFault::overwrites ? 3 : 2));
    for (const float value : tile[t % ring]) total += value;
  }
  sum[threadIdx.x] = total;
}

template <CopyFault fault>
bool sums_copied_tiles() {
  constexpr int tiles = 7;
  const std::vector<float> counting = counted(tiles * threads + 4);
  alignas(16) static float x[tiles * threads];
  std::copy_n(counting.begin(), tiles * threads, x);
  std::vector<float> sum(threads);
  launch(sum_of_copied_tiles<fault>, {1, threads}, x, sum.data(), tiles);
  const float expected = std::accumulate(std::begin(x), std::end(x), 0.0F);
  return std::all_of(sum.begin(), sum.end(), [&](float got) { return got == expected; });
}

TEST(Emulator, DetectsAsynchronousCopiesWithoutAWait) {
  EXPECT_TRUE(sums_copied_tiles<CopyFault::none>());
  EXPECT_FALSE(sums_copied_tiles<CopyFault::missing_wait>());
  EXPECT_FALSE(sums_copied_tiles<CopyFault::waits_too_little>());
  EXPECT_FALSE(sums_copied_tiles<CopyFault::missing_barrier>());
  EXPECT_FALSE(sums_copied_tiles<CopyFault::overwrites>());
}

__global__ void copy_a_tail(const float* x, float* seen, int valid) {
  __shared__ __align__(16) float buffer[4];
  copy_async<16>(buffer, x, valid);
  commit_copies();
  wait_for_copies<0>();
  for (int i = 0; i < 4; ++i) seen[i] = buffer[i];
}

TEST(Emulator, FillsTheRestOfAnAsynchronousCopyWithZeros) {
  alignas(16) const float x[4] = {1, 2, 3, 4};
  std::vector<float> seen(4);
  launch(copy_a_tail, {1, 1}, x, seen.data(), 12);
  EXPECT_EQ(seen, (std::vector<float>{1, 2, 3, 0}));
  const float* nothing = nullptr;
  launch(copy_a_tail, {1, 1}, nothing, seen.data(), 0);
  EXPECT_EQ(seen, (std::vector<float>{0, 0, 0, 0}));
  EXPECT_TRUE(says(launch_error(copy_a_tail, {1, 1}, x + 1, seen.data(), 12), {"no multiple"}));
}

// --- tensor cores --------------------------------------------------------------------------------

// C [16, 8] = A [16, 8] B [8, 8]. The elements of each lane are those of the figures in the PTX
// ISA, "Matrix fragments for mma.m16n8k8".
__global__ void multiply_on_tensor_cores(const float* a, const float* b, float* c) {
  const unsigned group = threadIdx.x / 4, member = threadIdx.x % 4;
  const std::uint32_t fragment_a[4] = {
      to_tf32(a[group * 8 + member]), to_tf32(a[(group + 8) * 8 + member]),
      to_tf32(a[group * 8 + member + 4]), to_tf32(a[(group + 8) * 8 + member + 4])};
  const std::uint32_t fragment_b[2] = {to_tf32(b[member * 8 + group]),
                                       to_tf32(b[(member + 4) * 8 + group])};
  float fragment_c[4] = {};
  mma_16x8x8_tf32(fragment_c, fragment_a, fragment_b);
  c[group * 8 + 2 * member] = fragment_c[0];
  c[group * 8 + 2 * member + 1] = fragment_c[1];
  c[(group + 8) * 8 + 2 * member] = fragment_c[2];
  c[(group + 8) * 8 + 2 * member + 1] = fragment_c[3];
}

TEST(Emulator, MultipliesMatricesOfAWarp) {
  Random random(6);
  std::vector<float> a(16 * 8), b(8 * 8), c(16 * 8);
  for (float& value : a) value = static_cast<float>(random.integer(-99, 99));
  for (float& value : b) value = static_cast<float>(random.integer(-99, 99));
  launch(multiply_on_tensor_cores, {1, 32}, a.data(), b.data(), c.data());
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      float expected = 0;
      for (std::size_t l = 0; l < 8; ++l) expected += a[i * 8 + l] * b[l * 8 + j];
      EXPECT_EQ(c[i * 8 + j], expected) << i << ", " << j;
    }
}

TEST(Emulator, RoundsToTf32HalvesAwayFromZero) {
  EXPECT_EQ(__uint_as_float(to_tf32(1 + 0x1p-11F)), 1 + 0x1p-10F);
  EXPECT_EQ(__uint_as_float(to_tf32(-1 - 0x1p-11F)), -1 - 0x1p-10F);
  EXPECT_EQ(__uint_as_float(to_tf32(1 + 0x1p-12F)), 1.0F);
  EXPECT_TRUE(std::isinf(__uint_as_float(to_tf32(0x1.fffp127F))));
}

// --- streams and graphs --------------------------------------------------------------------------

__global__ void add(float* x, float value) { x[threadIdx.x] += value; }
__global__ void multiply(float* x, float factor) { x[threadIdx.x] *= factor; }

// `threads` floats in device memory and in pinned host memory.
struct MirroredBuffer {
  MirroredBuffer() { *host = 0, device()->upload(on_device, host, bytes); }
  ~MirroredBuffer() { device()->release(on_device), device()->release_host(host); }
  static constexpr std::size_t bytes = threads * sizeof(float);
  float* on_device = static_cast<float*>(device()->allocate(bytes));
  float* host = static_cast<float*>(device()->allocate_host(bytes));
};

TEST(Emulator, DetectsADownloadWithoutAWait) {
  const simt::DeferredStreams deferred;
  MirroredBuffer x;
  launch(add, {1, 1}, x.on_device, 5.0F);
  device()->start_download(x.host, x.on_device, x.bytes);
  EXPECT_EQ(*x.host, 0);
  device()->synchronize();
  EXPECT_EQ(*x.host, 5);
}

TEST(Emulator, DetectsPinnedMemoryThatChangesTooEarly) {
  const simt::DeferredStreams deferred;
  MirroredBuffer x;
  *x.host = 3;
  device()->start_upload(x.on_device, x.host, x.bytes);
  *x.host = 4;
  device()->synchronize();
  EXPECT_EQ(*x.on_device, 4);
}

TEST(Emulator, DetectsAConcurrentUploadWithoutAWait) {
  const simt::DeferredStreams deferred;
  const auto is_correct = [](bool waits) {
    MirroredBuffer x;
    *x.host = 3;
    device()->upload_concurrently(x.on_device, x.host, x.bytes);
    if (waits) device()->await_uploads();
    launch(add, {1, 1}, x.on_device, 5.0F);
    device()->synchronize();
    return *x.on_device == 3 + 5;
  };
  int correct = 0;  // without a wait
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(is_correct(true));
    correct += is_correct(false) ? 1 : 0;
  }
  EXPECT_GT(correct, 0);
  EXPECT_LT(correct, 20);
}

TEST(Emulator, ReplaysRecordedWorkWithTheArgumentsOfTheRecording) {
  MirroredBuffer x;
  float value = 5;
  const auto work = [&] {
    launch(add, {1, 1}, x.on_device, value);
    device()->start_download(x.host, x.on_device, x.bytes);
  };
  const std::unique_ptr<Recording> recording = device()->record(std::vector<Task>{{work, {}}});
  value = 100;
  EXPECT_EQ(*x.on_device, 0) << "recorded work does not run";
  recording->launch();
  recording->launch();
  device()->synchronize();
  EXPECT_EQ(*x.host, 10);
}

// x becomes 2 (x + 1) + 4 if the tasks run in order.
TEST(Emulator, RunsTasksOfARecordingInAnyOrderThatTheirDependenciesAllow) {
  const auto result = [](const std::vector<std::vector<std::size_t>>& after) {
    MirroredBuffer x;
    const std::vector<Task> tasks = {
        {[&] {
           launch(add, {1, 1}, x.on_device, 1.0F);
         },
         after[0]},
        {[&] {
           launch(multiply, {1, 1}, x.on_device, 2.0F);
         },
         after[1]},
        {[&] {
           launch(add, {1, 1}, x.on_device, 4.0F);
         },
         after[2]},
        {[] {}, after[3]},
        {[&] { device()->start_download(x.host, x.on_device, x.bytes); }, after[4]}};
    device()->record(tasks)->launch();
    device()->synchronize();
    return *x.host;
  };
  std::set<float> in_order, any_order;
  for (int i = 0; i < 40; ++i) {
    in_order.insert(result({{}, {0}, {1}, {2}, {3}}));
    any_order.insert(result({{}, {}, {}, {0, 1}, {2, 3}}));
  }
  EXPECT_EQ(in_order, (std::set<float>{6}));
  EXPECT_EQ(any_order, (std::set<float>{5, 6, 9, 10})) << "the download is always last";
}

TEST(Emulator, RejectsRecordingOfWorkThatWaitsOrAllocates) {
  MirroredBuffer x;
  const auto recording_error = [](const std::function<void()>& work) {
    return error_of([&] { device()->record(std::vector<Task>{{work, {}}}); });
  };
  const auto ignoring = [](const std::function<void()>& work) {
    return [work] { error_of(work); };
  };
  for (const std::function<void()>& work : {
           std::function<void()>([] { device()->allocate(4); }),
           std::function<void()>([] { device()->synchronize(); }),
           std::function<void()>([&] { device()->upload(x.on_device, x.host, x.bytes); }),
           std::function<void()>([] { device()->start_timer(), device()->stop_timer(); }),
       }) {
    EXPECT_TRUE(says(recording_error(work), {"capturing"}));
    EXPECT_TRUE(says(recording_error(ignoring(work)), {"previous error"}));
  }
  launch(add, {1, 1}, x.on_device, 5.0F);  // the stream still works
  EXPECT_EQ(*x.on_device, 5);
}

}  // namespace
}  // namespace stepladder
