// Lab 7: the convolution as it is defined: seven loops, and a test for padding at every product.
#include "plugin.h"

int stepladder_supports_convolution(const stepladder_convolution_problem* p) {
  return p->direction == 0 && p->groups == 1;
}

void stepladder_convolution(const stepladder_convolution_problem* p, float* x, float* w, float* y) {
  const int64_t out_h = (p->height + 2 * p->pad_h - p->kernel_h) / p->stride_h + 1;
  const int64_t out_w = (p->width + 2 * p->pad_w - p->kernel_w) / p->stride_w + 1;
  for (int64_t n = 0; n < p->batch; ++n)
    for (int64_t o = 0; o < p->out_channels; ++o)
      for (int64_t i = 0; i < out_h; ++i)
        for (int64_t j = 0; j < out_w; ++j) {
          float sum = 0;
          for (int64_t c = 0; c < p->in_channels; ++c)
            for (int64_t r = 0; r < p->kernel_h; ++r)
              for (int64_t s = 0; s < p->kernel_w; ++s) {
                const int64_t h = i * p->stride_h - p->pad_h + r;
                const int64_t v = j * p->stride_w - p->pad_w + s;
                if (h < 0 || h >= p->height || v < 0 || v >= p->width) continue;
                sum += x[((n * p->in_channels + c) * p->height + h) * p->width + v] *
                       w[((o * p->in_channels + c) * p->kernel_h + r) * p->kernel_w + s];
              }
          y[((n * p->out_channels + o) * out_h + i) * out_w + j] = sum;
        }
}
