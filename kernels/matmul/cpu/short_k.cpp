// With a K of a few steps, writing C takes as long as the arithmetic: it is written once, in memory
// order. All of K is unrolled; a strip of A stays in registers while a block of B passes from L1:
//
//   strip of A   [up to 4 rows, K]     one broadcast per element, in registers
//   block of B   [K, 512 columns]      packed, in L1
//   row of C     one vector at a time, never in memory before it is finished
//
// Expected over packed_openmp: no tiles to start and end every few steps of K: up to 1.5x for
// products of a microsecond, 1.1x where C is in L2, nothing where C comes from memory.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/cpu/separate_epilogue.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

class ShortK final : public Plan {
 public:
  ShortK(const Problem& problem, const Resources& resources)
      : p_(problem),
        threads_(useful_threads(problem, resources.threads)),
        divides_columns_(problem.m < (problem.transpose_b ? 64 : 2 * threads_)) {
    if (p_.k > max_k) throw Unsupported("built for a K of at most 16");
    blocks_ = aligned_array<float>(threads_ * max_k * block_row);
  }

  void run(const Operands& operands) override {
    if (threads_ == 1) {
      multiply(operands, {0, p_.m}, {0, p_.n}, 0);
    } else {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
      for (int thread = 0; thread < threads_; ++thread) {
        if (divides_columns_)
          multiply(operands, {0, p_.m}, partition(p_.n, threads_, thread, line_floats), thread);
        else
          multiply(operands, partition(p_.m, threads_, thread), {0, p_.n}, thread);
      }
    }
    separate_epilogue(p_, operands, threads_);
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_k = 16, block_columns = 512;
  // Rows of a block are an odd number of cache lines apart: those 2 KiB apart share sets of L1.
  static constexpr std::int64_t block_row = block_columns + line_floats;
  // Rows of a strip: its A, a vector of B and a sum for each row fit 32 or 16 registers.
  static constexpr std::int64_t strip_rows(std::int64_t k) {
    return std::clamp<std::int64_t>((vector_registers == 32 ? 30 : 14) / (k + 1), 1, 4);
  }

  // Waking a thread pays from about a microsecond of arithmetic, or of writing, on.
  static int useful_threads(const Problem& p, int threads) {
    constexpr double flops_of_a_fork = 1.2e5, bytes_of_a_fork = 1 << 16;
    const double parts = std::max(flops(p) / flops_of_a_fork, bytes_written(p) / bytes_of_a_fork);
    return parts >= threads ? threads : std::max(1, static_cast<int>(parts));
  }

  void multiply(const Operands& o, Range rows, Range columns, int thread) const {
    static constexpr auto kernels = []<std::size_t... K>(std::index_sequence<K...>) {
      return std::array{std::array<Kernel, sizeof...(K)>{&multiply_strips<K + 1>...},
                        std::array<Kernel, sizeof...(K)>{&multiply_rows<K + 1>...}};
    }
    (std::make_index_sequence<max_k>{});
    const auto kernel = kernels[p_.n <= lanes ? 1 : 0][static_cast<std::size_t>(p_.k - 1)];
    float* block = blocks_.get() + thread * max_k * block_row;
    for (std::int64_t j = columns.begin; j < columns.end; j += block_columns) {
      const std::int64_t width = std::min(block_columns, columns.end - j);
      pack(o.b, j, width, block);
      kernel(p_, o.a, block, rows, width, o.c + j);
    }
  }

  // block[l, i] = op(B)[l, j + i] for i < width, and zeros up to whole vectors
  void pack(const float* b, std::int64_t j, std::int64_t width, float* block) const {
    const std::int64_t tail = width / lanes * lanes;
    for (std::int64_t l = 0; tail < width && l < p_.k; ++l)
      Vector(0.0F).store_aligned(block + l * block_row + tail);
    if (p_.transpose_b)
      transpose(b + j * p_.k, p_.k, block, block_row, width, p_.k);
    else
      for (std::int64_t l = 0; l < p_.k; ++l)
        std::copy_n(b + l * p_.n + j, width, block + l * block_row);
  }

  // c[i, j] = sum over l of a(i, l) · block[l, j] for i in rows, j < width
  using Kernel = void (*)(const Problem& p, const float* a, const float* block, Range rows,
                          std::int64_t width, float* c);

  template <std::int64_t K>
  static void multiply_strips(const Problem& p, const float* a, const float* block, Range rows,
                              std::int64_t width, float* c) {
    constexpr std::int64_t height = strip_rows(K);
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    std::int64_t i = rows.begin;
    const auto strip = [&](auto strip_height) {
      multiply_strip<K>(std::make_index_sequence<strip_height>{}, std::make_index_sequence<K>{},
                        std::make_index_sequence<strip_height * K>{}, a + i * a_row, a_row, a_step,
                        block, width, c + i * p.n, p.n);
      i += strip_height;
    };
    while (i + height <= rows.end) strip(std::integral_constant<std::int64_t, height>{});
    while (i < rows.end) strip(std::integral_constant<std::int64_t, 1>{});
  }

  // R runs over the rows of the strip, L over the steps of K, I over the elements of A, row by row.
  template <std::int64_t K, std::size_t... R, std::size_t... L, std::size_t... I>
  [[gnu::always_inline]] static void multiply_strip(std::index_sequence<R...>,
                                                    std::index_sequence<L...>,
                                                    std::index_sequence<I...>, const float* a,
                                                    std::int64_t a_row, std::int64_t a_step,
                                                    const float* block, std::int64_t width,
                                                    float* c, std::int64_t c_row) {
    const Vector a_strip[] = {Vector(a[static_cast<std::int64_t>(I / K) * a_row +
                                       static_cast<std::int64_t>(I % K) * a_step])...};
    for (std::int64_t j = 0; j < width; j += lanes) {
      Vector sum[] = {((void)R, Vector(0.0F))...};
      const auto step = [&](auto l) __attribute__((always_inline)) {
        const Vector b_l = in_register(Vector::load_aligned(block + l * block_row + j));
        ((sum[R] = l == 0 ? a_strip[R * K] * b_l : xsimd::fma(a_strip[R * K + l], b_l, sum[R])),
         ...);
      };
      (step(std::integral_constant<std::int64_t, L>{}), ...);
      float* at = c + j;
      if (j + lanes <= width)
        (sum[R].store_unaligned(at + static_cast<std::int64_t>(R) * c_row), ...);
      else
        (store_partial(at + static_cast<std::int64_t>(R) * c_row, sum[R], width - j), ...);
    }
  }

  // A C of at most one vector per row: B is in registers instead of A.
  template <std::int64_t K>
  static void multiply_rows(const Problem& p, const float* a, const float* block, Range rows,
                            std::int64_t width, float* c) {
    multiply_rows(std::make_index_sequence<K>{}, p, a, block, rows, width, c);
  }

  template <std::size_t... L>
  static void multiply_rows(std::index_sequence<L...>, const Problem& p, const float* a,
                            const float* block, Range rows, std::int64_t width, float* c) {
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    const Vector b[] = {Vector::load_aligned(block + L * block_row)...};
    const auto product = [&](std::int64_t i) __attribute__((always_inline)) {
      const float* a_i = a + i * a_row;
      Vector sum = Vector(a_i[0]) * b[0];
      ((L > 0
            ? void(sum = xsimd::fma(Vector(a_i[static_cast<std::int64_t>(L) * a_step]), b[L], sum))
            : void()),
       ...);
      return sum;
    };
    // A vector may reach into the next rows, which are written later.
    const std::int64_t whole = rows.end - ceil_div(lanes, width);
    std::int64_t i = rows.begin;
    for (; i <= whole; ++i) product(i).store_unaligned(c + i * width);
    for (; i < rows.end; ++i) store_partial(c + i * width, product(i), width);
  }

  Problem p_;
  int threads_;
  bool divides_columns_;
  AlignedArray<float> blocks_;  // [threads, K, block_row]
};

constexpr VariantInfo info{
    .name = "short_k",
    .technique = Technique::openmp,
    .builds_on = "packed_openmp",
    .adds =
        "a K of at most 16: unrolled, with rows of A in registers; C is written in memory order",
    .idea = Idea::register_tile,
    .isa = build_isa,
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, ShortK>};

}  // namespace
}  // namespace stepladder::matmul
