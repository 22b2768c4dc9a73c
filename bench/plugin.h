/* Kernels from a shared object of your own, in C or C++:
 *
 *     c++ -O3 -march=native -fopenmp -shared -fPIC -I bench mine.cpp -o libmine.so
 *     build/stepladder bench matmul --plugin ./libmine.so
 *
 * Define one or more of the functions below. For each, its primitive gets a rung that is named like
 * the file, `mine`, and is verified and measured like all others. A function writes all of its
 * results, reads all operands anew in every call, and may use `threads` threads. All floats are
 * single precision; operands do not overlap unless it is said.
 *
 * Where a kernel cannot compute every problem, define supports_… too, which returns 0 for those
 * that it cannot: their rows are `unavailable`, neither failed nor slow. */
#ifndef STEPLADDER_PLUGIN_H
#define STEPLADDER_PLUGIN_H

// NOLINTBEGIN(modernize-*,readability-identifier-naming): for C too
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C = op(A) · op(B), row-major. A is [m, k], or [k, m] where transpose_a is not 0; B is [k, n], or
 * [n, k] where transpose_b is not 0; C is [m, n]. */
struct stepladder_matmul_problem {
  int64_t m, n, k;
  int transpose_a, transpose_b, threads;
};
void stepladder_matmul(const struct stepladder_matmul_problem* problem, const float* a,
                       const float* b, float* c);
int stepladder_supports_matmul(const struct stepladder_matmul_problem* problem);

/* kernels/convolution/convolution.hpp has the formula. x is [batch, in_channels, height, width],
 * w [out_channels, in_channels / groups, kernel_h, kernel_w], y [batch, out_channels, out_h, out_w]
 * with out_h = (height + 2 pad_h - kernel_h) / stride_h + 1. direction 0: y is written; 1: x, the
 * gradient of the images, from w and the gradient y; 2: w, the gradient of the filters, from x and
 * y. */
struct stepladder_convolution_problem {
  int64_t batch, in_channels, height, width, out_channels, kernel_h, kernel_w;
  int64_t stride_h, stride_w, pad_h, pad_w, groups;
  int direction, threads;
};
void stepladder_convolution(const struct stepladder_convolution_problem* problem, float* x,
                            float* w, float* y);
int stepladder_supports_convolution(const struct stepladder_convolution_problem* problem);

/* x is [batch, channels, height, width], y [batch, channels, out_h, out_w] with
 * out_h = (height + 2 pad_h - window_h) / stride_h + 1. direction 0: forward; 1: backward, y is the
 * gradient, and x is written. */
struct stepladder_pooling_problem {
  int64_t batch, channels, height, width, window_h, window_w, stride_h, stride_w, pad_h, pad_w;
  int direction, threads;
  int counts_padding; /* average_pool: whether the divisor is the number of all positions */
};
/* argmax [batch, channels, out_h, out_w] is row · window_w + column of the first maximum in the
 * window; forward writes it, backward reads it. Padding is never the maximum. */
void stepladder_max_pool(const struct stepladder_pooling_problem* problem, float* x, float* y,
                         uint8_t* argmax);
int stepladder_supports_max_pool(const struct stepladder_pooling_problem* problem);
void stepladder_average_pool(const struct stepladder_pooling_problem* problem, float* x, float* y);
int stepladder_supports_average_pool(const struct stepladder_pooling_problem* problem);

/* kernels/sgd_update/sgd_update.hpp has the formulas. optimizer: 0 sgd, 1 momentum, 2 adagrad,
 * 3 adadelta, 4 rmsprop, 5 adam. weights and the states that the optimizer has are updated in
 * place, `count` elements each; the other states are not touched. step counts from 1. */
struct stepladder_sgd_update_problem {
  int64_t count;
  float weight_decay, momentum, rho, beta1, beta2, epsilon;
  int optimizer, threads;
};
void stepladder_sgd_update(const struct stepladder_sgd_update_problem* problem, float* weights,
                           const float* gradient, float* state1, float* state2, float learning_rate,
                           int64_t step);
int stepladder_supports_sgd_update(const struct stepladder_sgd_update_problem* problem);

/* output = the sum of the inputs of all ranks, or their mean. communicator points to an MPI_Comm.
 * input and output may be the same array. */
struct stepladder_all_reduce_problem {
  int64_t count;
  const void* communicator;
  int is_mean, ranks;
};
void stepladder_all_reduce(const struct stepladder_all_reduce_problem* problem, const float* input,
                           float* output);
int stepladder_supports_all_reduce(const struct stepladder_all_reduce_problem* problem);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
#endif
