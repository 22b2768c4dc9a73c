// From and to nchw, every layout is a transposition of matrices:
//
//   chwn      one matrix            [batch, channels · pixels]  <->  [channels · pixels, batch]
//   nhwc      one for each image    [channels, pixels]          <->  [pixels, channels]
//   nchw16c   one for each block    [16 channels, pixels]       <->  [pixels, 16]
//
// Squares of 4 x 4 or 8 x 8 are transposed in registers (transpose.hpp), in blocks of 16 x 16:
// every cache line of both sides is moved once and whole. Expected over serial: 4 and more, up to
// the copy bandwidth of the cache level or memory. Threads divide the matrices by columns.
#include <algorithm>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/reorder/reorder.hpp"

namespace stepladder::reorder {
namespace {

class Transposed final : public Plan {
 public:
  Transposed(const Problem& p, const Resources& resources) : p_(p) {
    if (p.changes_format()) throw Unsupported("converts layouts, not formats");
    if (p.from != Layout::nchw && p.to != Layout::nchw)
      throw Unsupported("supports conversions from and to NCHW only");
    const Layout other = p.from == Layout::nchw ? p.to : p.from;
    if (other == Layout::chwn) {
      rows_ = pitch_ = p.batch;
      columns_ = p.channels * p.pixels();
    } else {
      rows_ = p.channels;
      pitch_ = other == Layout::nhwc ? p.channels : block_channels;
      columns_ = p.pixels();
      images_ = p.batch;
    }
    blocks_ = ceil_div(rows_, pitch_);
    threads_ = static_cast<int>(
        std::clamp<std::int64_t>(p.x_count() / min_elements_per_thread, 1, resources.threads));
  }

  void run(const Operands& o) override {
    if (threads_ == 1) return run_part(o, 0);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int part = 0; part < threads_; ++part) run_part(o, part);
  }

 private:
  static constexpr std::int64_t chunk = 256;  // columns; a multiple of a cache line
  static constexpr std::int64_t min_elements_per_thread = 32768;  // some microseconds

  void run_part(const Operands& o, int part) const {
    const auto* x = static_cast<const float*>(o.x);
    auto* y = static_cast<float*>(o.y);
    const std::int64_t chunks = ceil_div(columns_, chunk);
    const Range items = partition(images_ * blocks_ * chunks, threads_, part);
    for (std::int64_t item = items.begin; item < items.end; ++item) {
      const std::int64_t matrix = item / chunks, first = item % chunks * chunk;
      const std::int64_t columns = std::min(chunk, columns_ - first);
      const std::int64_t image = matrix / blocks_, first_row = matrix % blocks_ * pitch_;
      const std::int64_t rows = std::min(pitch_, rows_ - first_row);  // fewer in the last block
      const std::int64_t plain = (image * rows_ + first_row) * columns_ + first;
      const std::int64_t packed = (matrix * columns_ + first) * pitch_;
      if (p_.from == Layout::nchw) {
        if (rows < pitch_) std::fill_n(y + packed, columns * pitch_, 0.0F);  // padding channels
        copy(x + plain, columns_, y + packed, pitch_, rows, columns);
      } else {
        copy(x + packed, pitch_, y + plain, columns_, columns, rows);
      }
    }
  }

  // transpose(); a matrix of one row is the same in both orders.
  static void copy(const float* x, std::int64_t x_pitch, float* y, std::int64_t y_pitch,
                   std::int64_t rows, std::int64_t columns) {
    if (rows == 1 && y_pitch == 1)
      std::copy_n(x, columns, y);
    else if (columns == 1 && x_pitch == 1)
      std::copy_n(x, rows, y);
    else
      transpose(x, x_pitch, y, y_pitch, rows, columns);
  }

  Problem p_;
  int threads_ = 1;
  // nchw is [images_, rows_, columns_], the other layout [images_, blocks_, columns_, pitch_].
  std::int64_t images_ = 1, blocks_ = 1;
  std::int64_t rows_ = 0, columns_ = 0, pitch_ = 0;
};

constexpr VariantInfo info{
    .name = "transposed",
    .technique = Technique::openmp,
    .builds_on = "serial",
    .adds = "transposes squares in registers and moves whole cache lines, on all cores",
    .idea = Idea::cache_blocking,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Reorder, Transposed>};

}  // namespace
}  // namespace stepladder::reorder
