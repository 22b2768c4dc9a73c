// Offsets of the elements of the implicit im2col matrix. A row of that matrix belongs to one
// (source channel, filter row, filter column), an index that cuDNN's paper calls CRS. The plan
// tabulates the offsets of every row, so a kernel reads one table entry where it would need three
// divisions. In NHWC the channel is the fastest index: consecutive rows are consecutive in w and in
// the source.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/convolution/cuda/correlation.hpp"

namespace stepladder::convolution {

struct alignas(16) CrsOffsets {
  int source;       // in elements, from the first source element of a pixel
  int row, column;  // the same offset in rows and columns: tells whether it leads into padding
  int filter;       // in elements, from the first filter element of a target channel
};

class CrsTable {
 public:
  explicit CrsTable(const CudaCorrelation& c) : count_(c.source_channels * c.taps()) {
    const auto offsets = [&](int i, int r, int s) -> CrsOffsets {
      const int row = c.rows.kernel_first + r * c.rows.kernel_step;
      const int column = c.columns.kernel_first + s * c.columns.kernel_step;
      return {.source = i * c.source.channel + r * c.source.row + s * c.source.column,
              .row = r,
              .column = s,
              .filter = i * c.w_source + row * c.w_row + column * c.w_column};
    };
    const int channels = c.source_channels, taps = c.taps();
    std::vector<CrsOffsets> table;
    for (int crs = 0; crs < count_; ++crs) {
      const int i = c.channels_last ? crs % channels : crs / taps;
      const int tap = c.channels_last ? crs / channels : crs % taps;
      table.push_back(offsets(i, tap / c.columns.taps, tap % c.columns.taps));
    }
    const std::size_t bytes = table.size() * sizeof(CrsOffsets);
    memory_ = device_memory(bytes);
    if (!table.empty()) device()->upload(memory_.get(), table.data(), bytes);
  }
  int count() const { return count_; }
  const CrsOffsets* data() const { return static_cast<const CrsOffsets*>(memory_.get()); }

 private:
  int count_;
  DeviceMemory memory_;
};

}  // namespace stepladder::convolution
