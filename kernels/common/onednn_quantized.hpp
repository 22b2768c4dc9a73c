// An operand of oneDNN, quantized to int8 by a reorder. Steps as in
// kernels/common/cpu/narrow/quantize.hpp: one for the operand, or one for each output channel of
// weights. For oneDNN 3, whose reorders take steps when they run.
#pragma once

#include "kernels/common/onednn.hpp"

#if DNNL_VERSION_MAJOR >= 3

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/common/cpu/narrow/quantize.hpp"
#include "kernels/common/cpu/partition.hpp"

namespace stepladder {

struct QuantizedMemory {
  dnnl::memory plain, chosen, steps;

  // mask: bit i for an axis i along which steps differ; `count` of them.
  void set(const dnnl::memory::desc& plain_desc, const dnnl::memory::desc& chosen_desc,
           const dnnl::engine& engine, int mask = 0, std::int64_t count = 1) {
    plain = dnnl::memory(plain_desc, engine, nullptr);
    chosen = dnnl::memory(chosen_desc, engine);
    values_.resize(static_cast<std::size_t>(count));
    steps = dnnl::memory({{count}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x},
                         engine, values_.data());
    dnnl::primitive_attr attributes;
    attributes.set_scales_mask(DNNL_ARG_DST, mask);
    reorder_ = dnnl::reorder({engine, plain_desc, engine, chosen_desc, attributes});
  }

  // One step for `count` values.
  void quantize(dnnl::stream& stream, const float* values, std::int64_t count, int threads) {
    std::uint32_t largest = 0;
    if (count <= narrow::elements_of_a_fork) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static, 1) \
    reduction(max                                                                  \
              : largest)
    for (int thread = 0; thread < threads; ++thread) {
      const Range part = partition(count, threads, thread);
      largest =
          std::max(largest, narrow::largest_magnitude(values + part.begin, part.end - part.begin));
    }
    values_.front() = narrow::step_of(largest).size;
    reorder(stream, values);
  }

  // A step for each channel, of `elements` values each.
  void quantize_channels(dnnl::stream& stream, const float* values, std::int64_t elements) {
    for (std::size_t c = 0; c < values_.size(); ++c) {
      const float* first = values + static_cast<std::int64_t>(c) * elements;
      values_[c] = narrow::step_of(narrow::largest_magnitude(first, elements)).size;
    }
    reorder(stream, values);
  }

 private:
  void reorder(dnnl::stream& stream, const float* values) {
    plain.set_data_handle(const_cast<float*>(values));
    reorder_.execute(stream, {{DNNL_ARG_FROM, plain},
                              {DNNL_ARG_TO, chosen},
                              {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, steps}});
  }

  std::vector<float> values_;
  dnnl::reorder reorder_;
};

}  // namespace stepladder

#endif
