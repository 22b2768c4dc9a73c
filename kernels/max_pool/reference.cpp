#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {

namespace {

// Calls visit(image, channel) for every plane in memory.
template <class Visit>
void for_each_plane(const Problem& p, const Visit& visit) {
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < stored_channels(p.layout, p.channels); ++c) visit(n, c);
}

// dy after the mask of ReLU.
double masked_dy(const Problem& p, const float* dy, const float* forward_y, std::int64_t i) {
  return p.epilogue == Epilogue::none || forward_y[i] > 0 ? dy[i] : 0;
}

}  // namespace

void reference_forward(const Problem& p, const float* x, const float* bias, double* y,
                       std::uint8_t* argmax) {
  const Strides in = p.x_strides(), out = p.y_strides();
  for_each_plane(p, [&](std::int64_t n, std::int64_t c) {
    const std::int64_t x_plane = in.plane(n, c), y_plane = out.plane(n, c);
    for (std::int64_t i = 0; i < p.out_h(); ++i)
      for (std::int64_t j = 0; j < p.out_w(); ++j) {
        double best = -std::numeric_limits<double>::infinity();
        std::int64_t position = -1;
        for (std::int64_t r = 0; r < p.window_h; ++r)
          for (std::int64_t s = 0; s < p.window_w; ++s) {
            const std::int64_t row = i * p.stride_h - p.pad_h + r,
                               column = j * p.stride_w - p.pad_w + s;
            if (row < 0 || row >= p.height || column < 0 || column >= p.width) continue;
            const double value = x[x_plane + row * in.row + column * in.column];
            if (position < 0 || value > best) best = value, position = r * p.window_w + s;
          }
        if (p.epilogue == Epilogue::bias_relu) best = std::max(0.0, best + bias[c]);
        const std::int64_t to = y_plane + i * out.row + j * out.column;
        y[to] = best;
        argmax[to] = static_cast<std::uint8_t>(position);
      }
  });
}

void reference_backward(const Problem& p, const float* dy, const std::uint8_t* argmax,
                        const float* forward_y, double* dx, double* magnitude) {
  const Strides in = p.x_strides(), out = p.y_strides();
  std::fill_n(dx, p.x_count(), 0.0);
  std::fill_n(magnitude, p.x_count(), 0.0);
  for_each_plane(p, [&](std::int64_t n, std::int64_t c) {
    const std::int64_t x_plane = in.plane(n, c), y_plane = out.plane(n, c);
    for (std::int64_t i = 0; i < p.out_h(); ++i)
      for (std::int64_t j = 0; j < p.out_w(); ++j) {
        const std::int64_t from = y_plane + i * out.row + j * out.column;
        const std::int64_t row = i * p.stride_h - p.pad_h + argmax[from] / p.window_w;
        const std::int64_t column = j * p.stride_w - p.pad_w + argmax[from] % p.window_w;
        const std::int64_t to = x_plane + row * in.row + column * in.column;
        const double g = masked_dy(p, dy, forward_y, from);
        dx[to] += g;
        magnitude[to] += std::abs(g);
      }
  });
}

void reference_bias_gradient(const Problem& p, const float* dy, const float* forward_y,
                             double* dbias, double* magnitude) {
  const std::int64_t plane_count = p.out_h() * p.out_w();
  std::fill_n(dbias, p.channels, 0.0);
  std::fill_n(magnitude, p.channels, 0.0);
  for (std::int64_t i = 0; i < p.y_count(); ++i) {
    const std::int64_t channel = i / plane_count % p.channels;
    const double g = masked_dy(p, dy, forward_y, i);
    dbias[channel] += g;
    magnitude[channel] += std::abs(g);
  }
}

}  // namespace stepladder::max_pool
