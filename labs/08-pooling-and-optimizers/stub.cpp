// Lab 8: two loops that compute little for each byte. max_pool branches at every comparison, Adam
// computes in double precision.
#include <cmath>

#include "plugin.h"

int stepladder_supports_max_pool(const stepladder_pooling_problem* p) { return p->direction == 0; }

void stepladder_max_pool(const stepladder_pooling_problem* p, float* x, float* y, uint8_t* argmax) {
  const int64_t out_h = (p->height + 2 * p->pad_h - p->window_h) / p->stride_h + 1;
  const int64_t out_w = (p->width + 2 * p->pad_w - p->window_w) / p->stride_w + 1;
  for (int64_t plane = 0; plane < p->batch * p->channels; ++plane)
    for (int64_t i = 0; i < out_h; ++i)
      for (int64_t j = 0; j < out_w; ++j) {
        float best = -INFINITY;
        int64_t position = -1;
        for (int64_t r = 0; r < p->window_h; ++r)
          for (int64_t s = 0; s < p->window_w; ++s) {
            const int64_t h = i * p->stride_h - p->pad_h + r;
            const int64_t v = j * p->stride_w - p->pad_w + s;
            if (h < 0 || h >= p->height || v < 0 || v >= p->width) continue;
            const float value = x[(plane * p->height + h) * p->width + v];
            if (position < 0 || value > best) {
              best = value;
              position = r * p->window_w + s;
            }
          }
        y[(plane * out_h + i) * out_w + j] = best;
        argmax[(plane * out_h + i) * out_w + j] = static_cast<uint8_t>(position);
      }
}

int stepladder_supports_sgd_update(const stepladder_sgd_update_problem* p) {
  return p->optimizer == 5;
}

void stepladder_sgd_update(const stepladder_sgd_update_problem* p, float* weights,
                           const float* gradient, float* state1, float* state2, float learning_rate,
                           int64_t step) {
  for (int64_t i = 0; i < p->count; ++i) {
    const double g = gradient[i] + static_cast<double>(p->weight_decay) * weights[i];
    const double m = p->beta1 * static_cast<double>(state1[i]) + (1.0 - p->beta1) * g;
    const double s = p->beta2 * static_cast<double>(state2[i]) + (1.0 - p->beta2) * g * g;
    const double mean = m / (1.0 - std::pow(p->beta1, step));
    const double square = s / (1.0 - std::pow(p->beta2, step));
    weights[i] -= static_cast<float>(learning_rate * mean / (std::sqrt(square) + p->epsilon));
    state1[i] = static_cast<float>(m);
    state2[i] = static_cast<float>(s);
  }
}
