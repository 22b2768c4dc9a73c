// The terms of a correlation's sums as a table: where term k = (source channel, row, column of the
// filter) finds its two factors. It takes the place of three divisions for every product's operands.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/common/cuda_plan.hpp"
#include "kernels/convolution/cuda_correlation.hpp"

namespace stepladder::convolution {

struct alignas(16) Term {
  int source;       // distance, in elements, from a pixel's first element of the source
  int row, column;  // of that distance: says whether it leads into padding
  int filter;       // distance from the target channel's first filter element
};

class Terms {
 public:
  explicit Terms(const Correlation& c) : count_(c.source_channels * c.taps()) {
    std::vector<Term> terms;
    for (int i = 0; i < c.source_channels; ++i)
      for (int r = 0; r < c.rows.taps; ++r)
        for (int s = 0; s < c.columns.taps; ++s)
          terms.push_back({.source = (i * c.rows.source + r) * c.columns.source + s,
                           .row = r,
                           .column = s,
                           .filter = i * c.w_source +
                                     (c.rows.kernel_first + r * c.rows.kernel_step) * c.w_row +
                                     c.columns.kernel_first + s * c.columns.kernel_step});
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
