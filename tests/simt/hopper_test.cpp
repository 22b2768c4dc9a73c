// The emulator's mbarriers, TMA and wgmma compute what the PTX ISA specifies and detect kernels
// that break its rules. Each faulty kernel is tested next to the same kernel without the fault.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/common/cuda/async_copy.hpp"
#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/wgmma.hpp"
#include "kernels/common/integer_math.hpp"
#include "tests/error_messages.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {
namespace {

constexpr int box_rows = 16;

// --- the TMA -------------------------------------------------------------------------------------

TensorMap map_of(const float* matrix, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                 int of_box_rows) {
  return tensor_map(matrix, rows, columns, pitch, of_box_rows, TmaRounding::none);
}

struct OneBox {
  float box[box_rows * swizzled_row];
  Barrier arrived;
};

// seen: [box_rows, 32]
__global__ void copy_a_box(TensorMap map, int row, int column, float* seen) {
  auto& shared = *dynamic_shared<OneBox>();
  if (threadIdx.x == 0) {
    shared.arrived.initialise(1);
    fence_barrier_init();
    shared.arrived.arrive_and_expect_tx(sizeof shared.box);
    load_box(shared.box, map, row, column, shared.arrived);
  }
  __syncthreads();
  shared.arrived.wait(0);
  for (int i = 0; i < box_rows; ++i)
    seen[i * swizzled_row + static_cast<int>(threadIdx.x)] =
        shared.box[swizzled(i, static_cast<int>(threadIdx.x))];
}

std::vector<float> aligned_floats(
    std::int64_t count) {  // of which the first is at a multiple of 16
  std::vector<float> values(static_cast<std::size_t>(count));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % 16, 0U);
  return values;
}

TEST(Hopper, TheTmaCopiesBoxesWithZerosPastTheEdges) {
  Random random(9);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t rows = random.integer(1, 40), columns = random.integer(1, 80);
    const std::int64_t pitch = round_up(columns, 4);
    std::vector<float> matrix = aligned_floats(rows * pitch), seen(box_rows * swizzled_row);
    for (float& value : matrix) value = static_cast<float>(random.integer(1, 1000));
    const auto row = static_cast<int>(random.integer(0, 40)),
               column = static_cast<int>(random.integer(0, 80));
    launch(copy_a_box, {1, 32, sizeof(OneBox)},
           map_of(matrix.data(), rows, columns, pitch, box_rows), row, column, seen.data());
    for (int i = 0; i < box_rows; ++i)
      for (int j = 0; j < swizzled_row; ++j) {
        const bool is_inside = row + i < rows && column + j < columns;
        const float expected =
            is_inside ? matrix[static_cast<std::size_t>((row + i) * pitch + column + j)] : 0;
        ASSERT_EQ(seen[static_cast<std::size_t>(i * swizzled_row + j)], expected);
      }
  }
}

TEST(Hopper, TheTmaRejectsMisalignedRows) {
  const std::vector<float> matrix = aligned_floats(64);
  EXPECT_NO_THROW(map_of(matrix.data(), 2, 6, 8, 2));
  EXPECT_THROW(map_of(matrix.data(), 2, 6, 6, 2), std::runtime_error);
  EXPECT_THROW(map_of(matrix.data() + 1, 2, 6, 8, 2), std::runtime_error);
}

// --- a pipeline of stages from the TMA to wgmma --------------------------------------------------

enum class Fault {
  none,
  reads_before_arrival,
  releases_before_the_wait,
  releases_for_all_warps,
  never_releases,
  expects_too_few_bytes,
  no_fence,
  reads_accumulators_before_the_wait,
  leaves_the_newest_group_in_flight,
  initialises_without_barrier,
};

struct Stages {
  static constexpr int count = 2;
  float a[count][64 * swizzled_row], b[count][128 * swizzled_row];
  Barrier full[count], empty[count];
};

// c [64, 128] = a [64, 32 steps] · bᵀ, b [128, 32 steps]: one producer and one consumer warpgroup.
template <Fault fault>
__global__ void multiply_in_stages(TensorMap a_map, TensorMap b_map, float* c, int steps) {
  auto& shared = *dynamic_shared<Stages>();
  constexpr unsigned releases = fault == Fault::releases_for_all_warps ? 1 : 4;
  if (threadIdx.x == 0)
    for (int i = 0; i < Stages::count; ++i) {
      shared.full[i].initialise(1);
      shared.empty[i].initialise(releases);
    }
  if constexpr (fault != Fault::initialises_without_barrier) __syncthreads();
  const auto stage_of = [](int step) { return step % Stages::count; };
  const auto parity_of = [](int step) { return static_cast<unsigned>(step / Stages::count % 2); };

  if (threadIdx.x < 128) {
    if (threadIdx.x != 0) return;
    for (int step = 0; step < steps; ++step) {
      const int s = stage_of(step);
      shared.empty[s].wait(parity_of(step) ^ 1U);
      constexpr unsigned bytes = sizeof shared.a[0] + sizeof shared.b[0];
      shared.full[s].arrive_and_expect_tx(fault == Fault::expects_too_few_bytes ? sizeof shared.b[0]
                                                                                : bytes);
      load_box(shared.a[s], a_map, 0, step * swizzled_row, shared.full[s]);
      load_box(shared.b[s], b_map, 0, step * swizzled_row, shared.full[s]);
    }
    return;
  }

  const int thread = static_cast<int>(threadIdx.x) - 128, lane = thread % 32;
  const int row = thread / 32 * 16 + lane / 4, member = lane % 4;
  float sums[64] = {}, early[64];
  std::uint32_t a[4][4];  // in flight until the next wait, as registers are
  for (int step = 0; step < steps; ++step) {
    const int s = stage_of(step);
    if constexpr (fault != Fault::reads_before_arrival) shared.full[s].wait(parity_of(step));
    for (int l = 0; l < 4; ++l) {
      a[l][0] = __float_as_uint(shared.a[s][swizzled(row, 8 * l + member)]);
      a[l][1] = __float_as_uint(shared.a[s][swizzled(row + 8, 8 * l + member)]);
      a[l][2] = __float_as_uint(shared.a[s][swizzled(row, 8 * l + member + 4)]);
      a[l][3] = __float_as_uint(shared.a[s][swizzled(row + 8, 8 * l + member + 4)]);
    }
    if constexpr (fault != Fault::no_fence) wgmma_fence();
    for (int l = 0; l < 4; ++l)
      wgmma_64x128x8_tf32(
          sums, a[l], advance_descriptor(wgmma_descriptor(shared_address(shared.b[s])), 0, 8 * l));
    const auto release = [&] {
      const bool is_releaser = fault == Fault::releases_for_all_warps ? thread == 0 : lane == 0;
      if (is_releaser && fault != Fault::never_releases) shared.empty[s].arrive();
    };
    if constexpr (fault == Fault::releases_before_the_wait) release();
    for (int i = 0; i < 64; ++i) early[i] = sums[i];
    wgmma_wait<fault == Fault::leaves_the_newest_group_in_flight ? 1 : 0>();
    if constexpr (fault != Fault::releases_before_the_wait) release();
  }
  const float* const result = fault == Fault::reads_accumulators_before_the_wait ? early : sums;
  for (int i = 0; i < 64; ++i)
    c[(row + i / 2 % 2 * 8) * 128 + i / 4 * 8 + 2 * member + i % 2] = result[i];
}

// Empty if the product is correct, else what is wrong.
template <Fault fault>
std::string outcome() {
  constexpr std::int64_t steps = 7, k = steps * swizzled_row;
  Random random(10);
  std::vector<float> a = aligned_floats(64 * k), b = aligned_floats(128 * k), c(64 * 128);
  for (float& value : a) value = static_cast<float>(random.integer(-9, 9));
  for (float& value : b) value = static_cast<float>(random.integer(-9, 9));
  try {
    launch(multiply_in_stages<fault>, {1, 256, sizeof(Stages)}, map_of(a.data(), 64, k, k, 64),
           map_of(b.data(), 128, k, k, 128), c.data(), static_cast<int>(steps));
  } catch (const std::exception& error) {
    return error.what();
  }
  for (std::int64_t i = 0; i < 64; ++i)
    for (std::int64_t j = 0; j < 128; ++j) {
      float expected = 0;
      for (std::int64_t l = 0; l < k; ++l)
        expected += a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(j * k + l)];
      if (c[static_cast<std::size_t>(i * 128 + j)] != expected) return "wrong product";
    }
  return "";
}

TEST(Hopper, AWarpgroupMultipliesWhatTheTmaLoads) {
  for (unsigned long long order = 1; order <= 40; ++order) {
    simt::seed_order(order);
    EXPECT_EQ(outcome<Fault::none>(), "") << order;
  }
}

TEST(Hopper, DetectsDataReadBeforeItsBarrier) {
  EXPECT_NE(outcome<Fault::reads_before_arrival>(), "");
  EXPECT_NE(outcome<Fault::expects_too_few_bytes>(), "");
}

TEST(Hopper, DetectsAStageReleasedWhileItIsRead) {
  EXPECT_NE(outcome<Fault::releases_before_the_wait>(), "");
  // One warp releases for all: only an order in which the TMA runs between two warps detects it.
  bool is_detected = false;
  for (unsigned long long order = 1; order <= 2000 && !is_detected; ++order) {
    simt::seed_order(order);
    is_detected = !outcome<Fault::releases_for_all_warps>().empty();
  }
  EXPECT_TRUE(is_detected);
}

TEST(Hopper, DetectsAccumulatorsReadBeforeTheWait) {
  EXPECT_EQ(outcome<Fault::reads_accumulators_before_the_wait>(), "wrong product");
}

TEST(Hopper, DetectsAStageThatIsReleasedWhileAGroupIsInFlight) {
  EXPECT_NE(outcome<Fault::leaves_the_newest_group_in_flight>(), "");
}

TEST(Hopper, RejectsProductsWithoutAFence) {
  EXPECT_TRUE(says(outcome<Fault::no_fence>(), {"without a preceding fence"}));
}

TEST(Hopper, RejectsADeadlockedPipeline) {
  EXPECT_TRUE(says(outcome<Fault::never_releases>(),
                   {"waits forever", "a phase of an mbarrier", "hopper_test.cpp"}));
}

TEST(Hopper, RejectsAnUninitialisedBarrier) {
  EXPECT_TRUE(says(outcome<Fault::initialises_without_barrier>(), {"not initialised"}));
}

// --- cp.async that reports to an mbarrier --------------------------------------------------------

enum class CopyFault {
  none,
  arrives_before_its_copy,
  reads_before_arrival,
  copies_over_what_is_read
};

struct CopyStages {
  static constexpr int count = 2;
  float values[count][4 * 32];
  Barrier full[count], empty[count];
};

// seen: [steps, 128]. One warp copies four floats per lane, or zeros in every third lane; another
// warp reads them.
template <CopyFault fault>
__global__ void pass_on(const float* from, float* seen, int steps) {
  auto& shared = *dynamic_shared<CopyStages>();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0)
    for (int i = 0; i < CopyStages::count; ++i) {
      shared.full[i].initialise(32);
      shared.empty[i].initialise(32);
    }
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const int s = step % CopyStages::count;
    const auto parity = static_cast<unsigned>(step / CopyStages::count % 2);
    float* const values = shared.values[s];
    if (threadIdx.x < 32) {
      if constexpr (fault != CopyFault::copies_over_what_is_read) shared.empty[s].wait(parity ^ 1U);
      copy_async_zfill(values + 4 * lane, from + 128 * step + 4 * lane, lane % 3 != 0);
      if constexpr (fault == CopyFault::arrives_before_its_copy)
        shared.full[s].arrive();
      else
        shared.full[s].arrive_after_copies();
    } else {
      if constexpr (fault != CopyFault::reads_before_arrival) shared.full[s].wait(parity);
      for (int i = lane; i < 128; i += 32) seen[128 * step + i] = values[i];
      shared.empty[s].arrive();
    }
  }
}

template <CopyFault fault>
std::string outcome_of_copies() {
  constexpr int steps = 5;
  std::vector<float> from = aligned_floats(steps * 128), seen(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
  try {
    launch(pass_on<fault>, {1, 64, sizeof(CopyStages)}, from.data(), seen.data(), steps);
  } catch (const std::exception& error) {
    return error.what();
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] != (i % 128 / 4 % 3 == 0 ? 0 : from[i])) return "wrong values";
  return "";
}

TEST(Hopper, AsynchronousCopiesOfThreadsReportToABarrier) {
  for (unsigned long long order = 1; order <= 40; ++order) {
    simt::seed_order(order);
    EXPECT_EQ(outcome_of_copies<CopyFault::none>(), "") << order;
  }
}

TEST(Hopper, DetectsCopiesThatTheBarrierDoesNotCover) {
  EXPECT_EQ(outcome_of_copies<CopyFault::arrives_before_its_copy>(), "wrong values");
  EXPECT_NE(outcome_of_copies<CopyFault::reads_before_arrival>(), "");
  EXPECT_NE(outcome_of_copies<CopyFault::copies_over_what_is_read>(), "");
}

__global__ void does_not_wait_for_its_copy(TensorMap map) {
  auto& shared = *dynamic_shared<OneBox>();
  shared.arrived.initialise(1);
  shared.arrived.arrive_and_expect_tx(sizeof shared.box);
  load_box(shared.box, map, 0, 0, shared.arrived);
}

TEST(Hopper, RejectsABlockThatEndsBeforeItsCopies) {
  const std::vector<float> matrix = aligned_floats(64);
  try {
    launch(does_not_wait_for_its_copy, {1, 1, sizeof(OneBox)},
           map_of(matrix.data(), 2, 32, 32, 16));
    FAIL() << "the block ended";
  } catch (const std::exception& error) {
    EXPECT_TRUE(says(error.what(), {"ends while a copy"}));
  }
}

__global__ void half_a_warpgroup_multiplies() {
  float sums[64] = {};
  const std::uint32_t a[4] = {};
  wgmma_fence();
  if (threadIdx.x < 64) wgmma_64x128x8_tf32(sums, a, wgmma_descriptor(0));
  wgmma_wait();
}

TEST(Hopper, RejectsAnIncompleteWarpgroup) {
  try {
    launch(half_a_warpgroup_multiplies, {1, 128, 64 << 10});
    FAIL() << "half a warpgroup multiplied";
  } catch (const std::exception& error) {
    EXPECT_TRUE(says(error.what(), {"waits forever", "the rest of its warpgroup"}));
  }
}

}  // namespace
}  // namespace stepladder
