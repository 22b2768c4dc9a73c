// The terms of a correlation's sums as a table: where term k = (source channel, row, column of the
// filter) finds its two factors. It takes the place of three divisions for every product's operands.
// In NHWC the channel comes last here too: terms next to each other lie so in w and in the source.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/convolution/cuda/correlation.hpp"

namespace stepladder::convolution {

struct alignas(16) Term {
  int source;       // distance, in elements, from a pixel's first element of the source
  int row, column;  // of that distance: says whether it leads into padding
  int filter;       // distance from the target channel's first filter element
};

class Terms {
 public:
  explicit Terms(const Correlation& c) : count_(c.source_channels * c.taps()) {
    const auto term = [&](int i, int r, int s) -> Term {
      const int row = c.rows.kernel_first + r * c.rows.kernel_step;
      const int column = c.columns.kernel_first + s * c.columns.kernel_step;
      return {.source = i * c.source.channel + r * c.source.row + s * c.source.column,
              .row = r,
              .column = s,
              .filter = i * c.w_source + row * c.w_row + column * c.w_column};
    };
    const int channels = c.source_channels, taps = c.taps();
    std::vector<Term> terms;
    for (int k = 0; k < count_; ++k) {
      const int i = c.channels_last ? k % channels : k / taps;
      const int tap = c.channels_last ? k / channels : k % taps;
      terms.push_back(term(i, tap / c.columns.taps, tap % c.columns.taps));
    }
    memory_ = device_memory(terms.size() * sizeof(Term));
    if (!terms.empty()) device()->upload(memory_.get(), terms.data(), terms.size() * sizeof(Term));
  }
  int count() const { return count_; }
  const Term* data() const { return static_cast<const Term*>(memory_.get()); }

 private:
  int count_;
  DeviceMemory memory_;
};

}  // namespace stepladder::convolution
