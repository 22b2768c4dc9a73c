// Probes of the headers in this folder: whether each feature does on this GPU what its header
// promises. A wait that would not end is a trap (barrier.hpp), which loses the device.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/common/cuda/async_copy.hpp"
#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/cluster.hpp"
#include "kernels/common/cuda/mma.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/wgmma.hpp"
#include "kernels/common/cuda/wgmma_ring.hpp"
#include "kernels/common/device_probe.hpp"

namespace stepladder {
namespace {

// --- operands, results and requirements ----------------------------------------------------------

// Row-major, on the host. Elements outside are 0.
struct Matrix {
  int rows, columns;
  std::vector<float> elements;

  float at(int row, int column) const {
    const bool is_inside = row < rows && column < columns;
    return is_inside ? elements[static_cast<std::size_t>(row * columns + column)] : 0;
  }
};

template <class Element>
Matrix matrix_of(int rows, int columns, const Element& element) {
  Matrix m{rows, columns, {}};
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      m.elements.push_back(static_cast<float>(element(row, column)));
  return m;
}

// All elements are different, and none is 0.
Matrix counted_matrix(int rows, int columns) {
  return matrix_of(rows, columns, [&](int row, int column) { return row * columns + column + 1; });
}

// Floats in device memory; first NaN where no values are given.
class DeviceFloats {
 public:
  explicit DeviceFloats(std::size_t count)
      : DeviceFloats(std::vector<float>(count, std::numeric_limits<float>::quiet_NaN())) {}
  explicit DeviceFloats(const std::vector<float>& values)
      : count_(values.size()), memory_(device_memory(count_ * sizeof(float))) {
    device()->upload(data(), values.data(), count_ * sizeof(float));
  }
  float* data() const { return static_cast<float*>(memory_.get()); }
  std::vector<float> values() const {
    std::vector<float> values(count_);
    device()->download(values.data(), data(), count_ * sizeof(float));
    return values;
  }

 private:
  std::size_t count_;
  DeviceMemory memory_;
};

std::string text(float value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(value));
  return digits;
}

void expect(const std::string& what, float expected, float found) {
  if (found == expected) return;
  throw std::runtime_error(what + ": expected " + text(expected) + ", found " + text(found));
}

std::string element(const char* matrix, int row, int column) {
  return std::string(matrix) + "[" + std::to_string(row) + ", " + std::to_string(column) + "]";
}

// The architecture for which the code that runs here was compiled, and whether it is 90a.
__global__ void code_kernel(float* code) {
#ifdef __CUDA_ARCH__
  code[0] = __CUDA_ARCH__ / 10;
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  code[1] = 1;
#endif
}

void require_code(int least) {
  require_compute_capability(least);
  static const std::vector<float> code = [] {
    const DeviceFloats found(std::vector<float>{0, 0});
    launch(code_kernel, {1, 1}, found.data());
    return found.values();
  }();
  if (least == 90 ? code[1] == 0 : code[0] < static_cast<float>(least))
    throw NotHere("built without it: STEPLADDER_CUDA_ARCHITECTURES must name " +
                  std::string(least == 90 ? "90a" : std::to_string(least)));
}

// --- TF32 ----------------------------------------------------------------------------------------

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
float float_of(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

constexpr std::uint32_t ignored = 0x1fff;  // the bits that TF32 does not have
std::uint32_t unchanged(std::uint32_t bits) { return bits; }
std::uint32_t truncated(std::uint32_t bits) { return bits & ~ignored; }
std::uint32_t nearest_ties_away(std::uint32_t bits) { return (bits + 0x1000) & ~ignored; }
std::uint32_t nearest_ties_even(std::uint32_t bits) {
  return (bits + 0xfff + (bits >> 13 & 1)) & ~ignored;
}

// [8, 32], of both signs: ties and their neighbours, after even and odd TF32 numbers.
Matrix numbers_between_tf32() {
  return matrix_of(8, swizzled_row, [](int row, int column) {
    constexpr std::uint32_t rests[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};
    const auto i = static_cast<std::uint32_t>(row * swizzled_row + column);
    return float_of(i % 2 << 31 | (120 + i % 13) << 23 | i * 37 % 1024 << 13 | rests[i / 2 % 6]);
  });
}

__global__ void to_tf32_kernel(const float* from, float* out) {
  out[threadIdx.x] = __uint_as_float(to_tf32(from[threadIdx.x]));
}

std::string probe_to_tf32() {
  require_code(80);
  const std::vector<float> numbers = numbers_between_tf32().elements;
  const DeviceFloats from(numbers), out(numbers.size());
  launch(to_tf32_kernel, {1, static_cast<unsigned>(numbers.size())}, from.data(), out.data());
  const std::vector<float> found = out.values();
  for (std::size_t i = 0; i < found.size(); ++i)
    expect("to_tf32 of " + text(numbers[i]), float_of(nearest_ties_away(bits_of(numbers[i]))),
           found[i]);
  return "";
}

// c [16, 8] += a [16, 8] b [8, 8]
__global__ void mma_kernel(const float* a, const float* b, float* c) {
  const int group = static_cast<int>(threadIdx.x) / 4, member = static_cast<int>(threadIdx.x) % 4;
  std::uint32_t a_bits[4], b_bits[2];
  for (int i = 0; i < 4; ++i)
    a_bits[i] = __float_as_uint(a[(group + i % 2 * 8) * 8 + member + i / 2 * 4]);
  for (int i = 0; i < 2; ++i) b_bits[i] = __float_as_uint(b[(member + i * 4) * 8 + group]);
  float sum[4];
  const auto place = [&](int i) { return (group + i / 2 * 8) * 8 + 2 * member + i % 2; };
  for (int i = 0; i < 4; ++i) sum[i] = c[place(i)];
  mma_16x8x8_tf32(sum, a_bits, b_bits);
  for (int i = 0; i < 4; ++i) c[place(i)] = sum[i];
}

std::string probe_mma() {
  require_code(80);
  const Matrix a = counted_matrix(16, 8), c = counted_matrix(16, 8);
  const Matrix b = matrix_of(8, 8, [](int l, int column) { return l * 19 + column * 7 - 100; });
  const DeviceFloats device_a(a.elements), device_b(b.elements), device_c(c.elements);
  launch(mma_kernel, {1, 32}, device_a.data(), device_b.data(), device_c.data());
  const Matrix found{16, 8, device_c.values()};
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float sum = c.at(row, column);
      for (int l = 0; l < 8; ++l) sum += a.at(row, l) * b.at(l, column);
      expect(element("C", row, column), sum, found.at(row, column));
    }
  return "";
}

// --- cp.async ------------------------------------------------------------------------------------

// Thread t copies the first 4t of `bytes` bytes. Two more threads copy 16 and 0 bytes by
// copy_async_zfill. Copies of 0 bytes come from `ignored_address`. out: [threads, 4], before -1.
template <int bytes>
__global__ void copy_kernel(const float* from, const float* ignored_address, float* out) {
  const int t = static_cast<int>(threadIdx.x);
  float* const to = dynamic_shared<float>() + 4 * t;
  for (int i = 0; i < 4; ++i) to[i] = -1;
  __syncthreads();
  if (t <= bytes / 4)
    copy_async<bytes>(to, t == 0 ? ignored_address : from, 4 * t);
  else
    copy_async_zfill(to, t == bytes / 4 + 1 ? from : ignored_address, t == bytes / 4 + 1);
  commit_copies();
  wait_for_copies<0>();
  for (int i = 0; i < 4; ++i) out[4 * t + i] = to[i];
}

template <int bytes>
void try_copies(const DeviceFloats& from, const float* ignored_address) {
  constexpr int partial = bytes / 4 + 1, copies = partial + 2;
  const DeviceFloats out(4 * copies);
  launch(copy_kernel<bytes>, {1, copies, 4 * copies * sizeof(float)},
         static_cast<const float*>(from.data()), ignored_address, out.data());
  const std::vector<float> found = out.values();
  for (int t = 0; t < copies; ++t)
    for (int i = 0; i < 4; ++i) {
      const int size = t < partial ? bytes : 16;
      const int valid = t < partial ? 4 * t : t == partial ? 16 : 0;
      expect("float " + std::to_string(i) + " of a copy of " + std::to_string(valid) + " of " +
                 std::to_string(size) + " bytes",
             4 * i < valid  ? static_cast<float>(i + 1)
             : 4 * i < size ? 0.0F
                            : -1.0F,
             found[static_cast<std::size_t>(4 * t + i)]);
    }
}

const std::vector<float> four_floats = {1, 2, 3, 4};

std::string probe_copies() {
  require_code(80);
  const DeviceFloats from(four_floats);
  try_copies<4>(from, from.data());
  try_copies<8>(from, from.data());
  try_copies<16>(from, from.data());
  return "";
}

std::string probe_ignored_address() {
  require_code(80);
  const DeviceFloats from(four_floats);
  try_copies<4>(from, nullptr);
  try_copies<16>(from, nullptr);
  return "";
}

// --- barriers ------------------------------------------------------------------------------------

constexpr int phases = 4;

// Both warps arrive in each phase. All threads then read what both have written before.
// out: [phases, 64]
__global__ void phases_kernel([[maybe_unused]] float* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  struct Shared {
    Barrier both;
    float written[phases][2];
  };
  auto& shared = *dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    shared.both.initialise(2);
    fence_barrier_init();
  }
  __syncthreads();
  for (unsigned phase = 0; phase < phases; ++phase) {
    const unsigned parity = phase % 2;
    if (threadIdx.x % 32 == 0) {
      shared.both.wait(parity ^ 1U);  // of the preceding phase: returns at once
      shared.written[phase][threadIdx.x / 32] = static_cast<float>(10 * phase + threadIdx.x / 32);
      shared.both.arrive();
    }
    shared.both.wait(parity);
    out[phase * 64 + threadIdx.x] = shared.written[phase][0] + shared.written[phase][1];
    __syncthreads();
  }
#endif
}

std::string probe_phases() {
  require_code(90);
  const DeviceFloats out(phases * 64);
  launch(phases_kernel, {1, 64, 1024}, out.data());
  const Matrix found{phases, 64, out.values()};
  for (int phase = 0; phase < phases; ++phase)
    for (int thread = 0; thread < 64; ++thread)
      expect("what thread " + std::to_string(thread) + " read after phase " + std::to_string(phase),
             static_cast<float>(20 * phase + 1), found.at(phase, thread));
  return "";
}

// Warp 0 copies 16 bytes per lane, or zeros in every third lane; warp 1 waits for them.
// from and out: [32, 4]
__global__ void copy_to_warp_kernel([[maybe_unused]] const float* from,
                                    [[maybe_unused]] float* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  struct Shared {
    float copied[32][4];
    Barrier full;
  };
  auto& shared = *dynamic_shared<Shared>();
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    shared.full.initialise(32);
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    copy_async_zfill(shared.copied[lane], from + 4 * lane, lane % 3 != 0);
    shared.full.arrive_after_copies();
  }
  shared.full.wait(0);
  if (threadIdx.x >= 32)
    for (unsigned i = 0; i < 4; ++i) out[4 * lane + i] = shared.copied[lane][i];
#endif
}

std::string probe_copies_at_barrier() {
  require_code(90);
  const Matrix numbers = counted_matrix(32, 4);
  const DeviceFloats from(numbers.elements), out(numbers.elements.size());
  launch(copy_to_warp_kernel, {1, 64, 1024}, static_cast<const float*>(from.data()), out.data());
  const Matrix found{32, 4, out.values()};
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      expect("float " + std::to_string(i) + " of lane " + std::to_string(lane),
             lane % 3 == 0 ? 0 : numbers.at(lane, i), found.at(lane, i));
  return "";
}

// --- the TMA -------------------------------------------------------------------------------------

TensorMap map_of(const DeviceFloats& floats, const Matrix& m, int box_rows,
                 TmaRounding rounding = TmaRounding::none) {
  return tensor_map(floats.data(), m.rows, m.columns, m.columns, box_rows, rounding);
}

std::string probe_tensor_map() {
  require_code(90);
  const Matrix m = counted_matrix(8, swizzled_row);
  const DeviceFloats floats(m.elements);
  map_of(floats, m, 8);
  map_of(floats, m, 8, TmaRounding::to_tf32);
  return "";
}

constexpr int most_rows = 256;  // of a box

struct Box {
  int row, column;
};
constexpr int boxes = 3;
struct Boxes {
  Box at[boxes];
};

// Loads the boxes one after another to the same place. out: [boxes, box_rows, 32], each box as it
// lies in shared memory.
__global__ void load_boxes_kernel([[maybe_unused]] const __grid_constant__ TensorMap map,
                                  [[maybe_unused]] const __grid_constant__ Boxes of_map,
                                  [[maybe_unused]] int box_rows, [[maybe_unused]] float* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  struct Shared {
    float box[most_rows * swizzled_row];
    Barrier full;
  };
  auto& shared = *dynamic_shared<Shared>();
  const int count = box_rows * swizzled_row;
  if (threadIdx.x == 0) {
    shared.full.initialise(1);
    fence_barrier_init();
  }
  __syncthreads();
  for (int i = 0; i < boxes; ++i) {
    if (threadIdx.x == 0) {
      shared.full.arrive_and_expect_tx(static_cast<unsigned>(count) * sizeof(float));
      load_box(shared.box, map, of_map.at[i].row, of_map.at[i].column, shared.full);
    }
    shared.full.wait(static_cast<unsigned>(i) % 2);
    for (int e = static_cast<int>(threadIdx.x); e < count; e += static_cast<int>(blockDim.x))
      out[i * count + e] = shared.box[e];
    __syncthreads();
  }
#endif
}

std::vector<float> load_boxes(const Matrix& m, int box_rows, const Boxes& of_map,
                              TmaRounding rounding = TmaRounding::none) {
  require_code(90);
  const DeviceFloats from(m.elements);
  const DeviceFloats out(static_cast<std::size_t>(boxes * box_rows * swizzled_row));
  launch(load_boxes_kernel, {1, 128, most_rows * swizzled_row * sizeof(float) + 1024},
         map_of(from, m, box_rows, rounding), of_map, box_rows, out.data());
  return out.values();
}

// Expects every element of the boxes where swizzled() says, and zeros outside the matrix.
void try_boxes(const Matrix& m, int box_rows, const Boxes& of_map) {
  const std::vector<float> found = load_boxes(m, box_rows, of_map);
  for (int i = 0; i < boxes; ++i)
    for (int row = 0; row < box_rows; ++row)
      for (int column = 0; column < swizzled_row; ++column) {
        const Box box = of_map.at[i];
        expect(
            element("box", row, column) + " at " + element("matrix", box.row, box.column),
            m.at(box.row + row, box.column + column),
            found[static_cast<std::size_t>(i * box_rows * swizzled_row + swizzled(row, column))]);
      }
}

std::string probe_swizzle() {
  try_boxes(counted_matrix(264, 64), most_rows, {{{0, 0}, {8, 32}, {5, 20}}});
  return "";
}

// Boxes that cross the right and the lower edge, and one below the matrix. Had the TMA not counted
// the bytes outside, the wait would not end.
std::string probe_out_of_bounds() {
  try_boxes(counted_matrix(20, 44), 16, {{{0, 0}, {8, 32}, {32, 0}}});
  return "";
}

std::string probe_rounding() {
  const Matrix numbers = numbers_between_tf32();
  const std::vector<float> found = load_boxes(numbers, 8, {}, TmaRounding::to_tf32);
  struct Rounding {
    const char* name;
    std::uint32_t (*apply)(std::uint32_t);
  };
  std::string counts;
  for (const Rounding& rounding :
       {Rounding{"rounds to nearest, ties away from zero", nearest_ties_away},
        {"rounds to nearest, ties to even", nearest_ties_even},
        {"truncates", truncated},
        {"leaves all bits, so wgmma truncates", unchanged}}) {
    std::size_t count = 0;
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < swizzled_row; ++column)
        if (bits_of(found[static_cast<std::size_t>(swizzled(row, column))]) ==
            rounding.apply(bits_of(numbers.at(row, column))))
          ++count;
    if (count == numbers.elements.size()) return std::string("the TMA ") + rounding.name;
    counts += "; " + std::to_string(count) + " if it " + rounding.name;
  }
  throw std::runtime_error("expected 256 numbers as the TMA rounds them, found" + counts.substr(1));
}

// --- clusters ------------------------------------------------------------------------------------

constexpr unsigned cluster_threads = 32;

// Each block writes its rank to the next block, then reads from the block after it.
// out: [blocks, 2, 32]
__global__ void shared_cluster_kernel(float* out) {
  auto* const own = dynamic_shared<float>();  // [32]
  const unsigned rank = cluster_rank();
  cluster_arrive();
  cluster_wait();
  map_shared_rank(own, (rank + 1) % max_portable_cluster_size)[threadIdx.x] =
      static_cast<float>(100 * rank + threadIdx.x);
  cluster_sync();
  float* const to = out + rank * 2 * cluster_threads + threadIdx.x;
  to[0] = own[threadIdx.x];
  to[cluster_threads] = map_shared_rank(own, (rank + 2) % max_portable_cluster_size)[threadIdx.x];
  cluster_sync();  // no block ends while others read its memory
}

std::string probe_shared_cluster() {
  require_code(90);
  constexpr int blocks = max_portable_cluster_size;
  const DeviceFloats out(blocks * 2 * cluster_threads);
  launch(shared_cluster_kernel, {blocks, cluster_threads, cluster_threads * sizeof(float), blocks},
         out.data());
  const Matrix found{blocks, 2 * cluster_threads, out.values()};
  for (int rank = 0; rank < blocks; ++rank)
    for (int thread = 0; thread < int{cluster_threads}; ++thread) {
      const std::string of = " by thread " + std::to_string(thread) + " of block ";
      expect("received" + of + std::to_string(rank),
             static_cast<float>((rank + blocks - 1) % blocks * 100 + thread),
             found.at(rank, thread));
      expect("read" + of + std::to_string(rank),
             static_cast<float>((rank + 1) % blocks * 100 + thread),
             found.at(rank, int{cluster_threads} + thread));
    }
  return "";
}

constexpr int part_rows = 8;  // of each block
constexpr int whole_box = 2 * part_rows * swizzled_row;

// Each of two blocks loads its part into both. out: [2, 2 · 8, 32], as it lies in shared memory.
__global__ void multicast_kernel([[maybe_unused]] const __grid_constant__ TensorMap map,
                                 [[maybe_unused]] float* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  struct Shared {
    float box[whole_box];
    Barrier full;
  };
  auto& shared = *dynamic_shared<Shared>();
  const unsigned rank = cluster_rank();
  if (threadIdx.x == 0) {
    shared.full.initialise(1);
    fence_barrier_init();
  }
  cluster_sync();
  if (threadIdx.x == 0) {
    shared.full.arrive_and_expect_tx(sizeof shared.box);
    const int row = static_cast<int>(rank) * part_rows;
    load_box_multicast(0b11, shared.box + row * swizzled_row, map, row, 0, shared.full);
  }
  shared.full.wait(0);
  for (unsigned e = threadIdx.x; e < whole_box; e += blockDim.x)
    out[rank * whole_box + e] = shared.box[e];
  cluster_sync();  // no block ends while the other writes to it
#endif
}

std::string probe_multicast() {
  require_code(90);
  const Matrix m = counted_matrix(2 * part_rows, swizzled_row);
  const DeviceFloats from(m.elements), out(2 * whole_box);
  launch(multicast_kernel, {2, cluster_threads, whole_box * sizeof(float) + 1024, 2},
         map_of(from, m, part_rows), out.data());
  const std::vector<float> found = out.values();
  for (int block = 0; block < 2; ++block)
    for (int row = 0; row < 2 * part_rows; ++row)
      for (int column = 0; column < swizzled_row; ++column)
        expect(element("box", row, column) + " in block " + std::to_string(block),
               m.at(row, column),
               found[static_cast<std::size_t>(block * whole_box + swizzled(row, column))]);
  return "";
}

// --- wgmma ---------------------------------------------------------------------------------------

constexpr int tile_k = swizzled_row;

// d [64, 2 width] = a [64, 32] b, from bᵀ [2 width, 32]: one warpgroup, two products of `width`
// columns for each 8 of K.
template <int width>
__global__ void __launch_bounds__(warpgroup_threads)
    wgmma_kernel([[maybe_unused]] const __grid_constant__ TensorMap b_map,
                 [[maybe_unused]] const float* a, [[maybe_unused]] float* d) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  struct Shared {
    float b[2 * width * tile_k];
    Barrier full;
  };
  auto& shared = *dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    shared.full.initialise(1);
    fence_barrier_init();
    shared.full.arrive_and_expect_tx(sizeof shared.b);
    load_box(shared.b, b_map, 0, 0, shared.full);
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x), group = thread % 32 / 4, member = thread % 4;
  const int row = thread / 32 * 16 + group;
  std::uint32_t fragments[tile_k / 8][4];
#pragma unroll
  for (int l = 0; l < tile_k; l += 8)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      fragments[l / 8][e] = __float_as_uint(a[(row + e % 2 * 8) * tile_k + l + e / 2 * 4 + member]);
  float sums[2][width / 2] = {};
  const std::uint64_t descriptor = wgmma_descriptor(shared_address(shared.b));
  shared.full.wait(0);
  wgmma_fence();
#pragma unroll
  for (int l = 0; l < tile_k; l += 8)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t b = advance_descriptor(descriptor, half * width, l);
      if constexpr (width == 64)
        wgmma_64x64x8_tf32(sums[half], fragments[l / 8], b);
      else
        wgmma_64x128x8_tf32(sums[half], fragments[l / 8], b);
    }
  wgmma_wait();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    fence_accumulators(sums[half]);
#pragma unroll
    for (int i = 0; i < width / 2; ++i)
      d[(row + i / 2 % 2 * 8) * 2 * width + half * width + i / 4 * 8 + 2 * member + i % 2] =
          sums[half][i];
  }
#endif
}

template <int width>
void try_product(const char* what, const Matrix& a, const Matrix& b_transposed) {
  const DeviceFloats device_a(a.elements), device_b(b_transposed.elements), d(64 * 2 * width);
  launch(wgmma_kernel<width>, {1, warpgroup_threads, 2 * width * tile_k * sizeof(float) + 1024},
         map_of(device_b, b_transposed, 2 * width), static_cast<const float*>(device_a.data()),
         d.data());
  const Matrix found{64, 2 * width, d.values()};
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 2 * width; ++column) {
      float sum = 0;
      for (int l = 0; l < tile_k; ++l) sum += a.at(row, l) * b_transposed.at(column, l);
      expect(element("D", row, column) + " of " + what, sum, found.at(row, column));
    }
}

// Small integers, so that all sums are exact. An identity beside a matrix of different numbers
// shows where each of them goes.
template <int width>
std::string probe_wgmma() {
  require_hopper();
  require_code(90);
  const auto identity = [](int rows) {
    return matrix_of(rows, tile_k, [](int row, int l) { return row % tile_k == l; });
  };
  const Matrix a = matrix_of(64, tile_k, [](int row, int l) { return row * tile_k + l; });
  const Matrix b = matrix_of(2 * width, tile_k, [](int column, int l) {
    return (column * tile_k + l) % 2039;  // at most 11 bits, all columns different
  });
  const Matrix mixed_a = matrix_of(64, tile_k, [](int row, int l) { return (row * 5 + l) % 61; });
  const Matrix mixed_b = matrix_of(
      2 * width, tile_k, [](int column, int l) { return (column * 29 + l * 7) % 31 - 15; });
  try_product<width>("I B", identity(64), b);
  try_product<width>("A I", a, identity(2 * width));
  try_product<width>("A B", mixed_a, mixed_b);
  return "";
}

// --- registers -----------------------------------------------------------------------------------

constexpr int consumers = 2 * warpgroup_threads;
constexpr int values_per_thread = 192;  // more than registers_at_start
constexpr int rounds = 3;

// One warpgroup gives its registers to two others, which keep their values in them.
// from: [values_per_thread, consumers], out: [consumers]
__global__ void __launch_bounds__(3 * warpgroup_threads, 1)
    registers_kernel([[maybe_unused]] const float* from, [[maybe_unused]] float* out,
                     [[maybe_unused]] int times) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if (threadIdx.x < warpgroup_threads) {
    warpgroup_reg_dealloc<40>();
  } else {
    warpgroup_reg_alloc<232>();
    const int thread = static_cast<int>(threadIdx.x) - warpgroup_threads;
    float values[values_per_thread];
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) values[i] = from[i * consumers + thread];
#pragma unroll 1
    for (int round = 0; round < times; ++round)
#pragma unroll
      for (int i = 0; i < values_per_thread; ++i) values[i] += values[(i + 1) % values_per_thread];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) sum += values[i] * static_cast<float>(i % 7);
    out[thread] = sum;
  }
#endif
}

std::string probe_registers() {
  require_hopper();
  require_code(90);
  require_wgmma_code(registers_kernel);
  const Matrix numbers =
      matrix_of(values_per_thread, consumers, [](int i, int thread) { return (i + thread) % 16; });
  const DeviceFloats from(numbers.elements), out(consumers);
  launch(registers_kernel, {1, 3 * warpgroup_threads}, static_cast<const float*>(from.data()),
         out.data(), rounds);
  const std::vector<float> found = out.values();
  for (int thread = 0; thread < consumers; ++thread) {
    float values[values_per_thread], sum = 0;
    for (int i = 0; i < values_per_thread; ++i) values[i] = numbers.at(i, thread);
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < values_per_thread; ++i) values[i] += values[(i + 1) % values_per_thread];
    for (int i = 0; i < values_per_thread; ++i) sum += values[i] * static_cast<float>(i % 7);
    expect("the sum of thread " + std::to_string(thread), sum,
           found[static_cast<std::size_t>(thread)]);
  }
  return "";
}

// -------------------------------------------------------------------------------------------------

constexpr const char* to_tf32_rungs =
    "matmul tf32_tensor_core, tf32x3, tf32_split_k, tf32x3_split_k, tf32x3_wgmma, "
    "tf32x3_wgmma_cluster; convolution tf32_implicit_gemm, tf32x3_wgmma";
constexpr const char* mma_rungs =
    "matmul tf32_tensor_core, tf32x3, tf32_split_k, tf32x3_split_k; convolution tf32_implicit_gemm";
constexpr const char* wgmma_rungs =
    "matmul and convolution tf32_wgmma, tf32x3_wgmma; matmul tf32_wgmma_cluster, "
    "tf32x3_wgmma_cluster";
constexpr const char* cp_async_rungs =
    "matmul warp_tile, split_k, tf32_tensor_core, tf32x3, tf32_split_k, tf32x3_split_k; "
    "convolution "
    "tf32_wgmma, tf32x3_wgmma";

// Those that wait at barriers come late, and those after which the device may not answer last.
constexpr DeviceProbe probes[] = {
    {"to_tf32", to_tf32_rungs, probe_to_tf32},
    {"mma_16x8x8", mma_rungs, probe_mma},
    {"cp_async", cp_async_rungs, probe_copies},
    {"tensor_map", wgmma_rungs, probe_tensor_map},
    {"shared_cluster", "matmul tf32_split_k, tf32x3_split_k", probe_shared_cluster},
    {"mbarrier_parity", wgmma_rungs, probe_phases},
    {"tma_swizzle", wgmma_rungs, probe_swizzle},
    {"tma_out_of_bounds", wgmma_rungs, probe_out_of_bounds},
    {"tma_tf32", "matmul tf32_wgmma, tf32_wgmma_cluster; convolution tf32_wgmma", probe_rounding},
    {"cp_async_mbarrier", "convolution tf32_wgmma, tf32x3_wgmma", probe_copies_at_barrier},
    {"wgmma_64x64x8", "convolution tf32_wgmma, tf32x3_wgmma", probe_wgmma<64>},
    {"wgmma_64x128x8", wgmma_rungs, probe_wgmma<128>},
    {"multicast", "matmul tf32_wgmma_cluster, tf32x3_wgmma_cluster", probe_multicast},
    {"cp_async_any_address", cp_async_rungs, probe_ignored_address},
    {"setmaxnreg", wgmma_rungs, probe_registers},
};

const bool registered = (register_device_probes(probes), true);

}  // namespace
}  // namespace stepladder
