// A convolution by two libraries: FFTW transforms whole images and filters, OpenBLAS multiplies the
// spectra, one complex matrix product per frequency. It is what a user of libraries would write,
// and the peer of `fft`, which differs in its tiles and in keeping them in the cache.
//
// FFTW is fastest with the values of an image side by side, the products need those of a frequency
// side by side, so spectra are transposed in between (FFTW can do it, at half the speed).
//
// x begins at row pad_h and column pad_w of a padded image, which has as many rows and columns as x
// with its padding, or a few more. So no direction has wrapped values in its result.
#include <fftw3.h>

#include <algorithm>
#include <cstring>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/openmp_threads.hpp"
#include "kernels/common/openblas.hpp"
#include "kernels/common/shared_library.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {
namespace {

// The smallest product of 2, 3, 5 and 7 that is at least n; FFTW transforms these fast.
std::int64_t fast_size(std::int64_t n) {
  for (;; ++n) {
    std::int64_t rest = n;
    for (const int factor : {2, 3, 5, 7})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

class Fftw final : public Plan {
 public:
  Fftw(const Problem& problem, const Resources& resources)
      : p_(problem), threads_(resources.threads) {
    if (p_.stride_h != 1 || p_.stride_w != 1) throw Unsupported("FFT supports stride 1 only");
    constexpr std::int64_t most = std::int64_t{1} << 28;  // elements
    if (std::max({x_.planes, w_.planes, y_.planes}) > most / (rows_ * columns_))
      throw Unsupported("an operand padded to whole images would take more than 1 GiB");
    init_threads_();
    set_fftw_threads_(threads_);
    set_time_limit_(0.2);  // seconds of trying algorithms, per plan
    for (Operand* operand : {&x_, &w_, &y_}) create(*operand);
  }
  ~Fftw() override {
    for (const Operand* operand : {&x_, &w_, &y_})
      if (operand->plan != nullptr) destroy_(operand->plan);
  }
  Fftw(const Fftw&) = delete;
  Fftw& operator=(const Fftw&) = delete;

  void run(const Operands& o) override {
    set_blas_threads_(1);  // the threads divide the frequencies
    const OpenMpThreads scope(threads_);
    if (&result() != &x_) transform(x_, o.x);
    if (&result() != &w_) transform(w_, o.w);
    if (&result() != &y_) transform(y_, o.y);
    multiply();
    transpose(result().spectra.get(), result().by_plane.get(), frequencies_, result().planes);
    execute_(result().plan);
    unpad(result(), &result() == &x_ ? o.x : &result() == &w_ ? o.w : o.y);
  }

 private:
  struct Operand {
    std::int64_t planes, rows, columns;              // images times channels, or filters
    std::int64_t top, left;                          // place in the padded image
    AlignedArray<float> padded = nullptr;            // [planes, rows_, columns_]
    AlignedArray<fftwf_complex> by_plane = nullptr;  // [planes, frequencies_]
    AlignedArray<fftwf_complex> spectra = nullptr;   // [frequencies_, planes]
    fftwf_plan plan = nullptr;                       // from padded to by_plane; of the result, back
  };

  Operand& result() {
    return p_.direction == Direction::forward         ? y_
           : p_.direction == Direction::backward_data ? x_
                                                      : w_;
  }

  void create(Operand& o) {
    const std::int64_t size = o.planes * rows_ * columns_;
    o.padded = aligned_array<float>(size);
    const auto frequencies = static_cast<std::size_t>(frequencies_ * o.planes);
    o.by_plane = aligned_array<fftwf_complex>(frequencies);
    o.spectra = aligned_array<fftwf_complex>(frequencies);
    const int shape[] = {static_cast<int>(rows_), static_cast<int>(columns_)};
    const int planes = static_cast<int>(o.planes), plane = shape[0] * shape[1];
    const int spectrum = static_cast<int>(frequencies_);
    o.plan = &o == &result()
                 ? plan_inverse_(2, shape, planes, o.by_plane.get(), nullptr, 1, spectrum,
                                 o.padded.get(), nullptr, 1, plane, FFTW_MEASURE)
                 : plan_forward_(2, shape, planes, o.padded.get(), nullptr, 1, plane,
                                 o.by_plane.get(), nullptr, 1, spectrum, FFTW_MEASURE);
    if (o.plan == nullptr) throw Unsupported("FFTW has no plan for this problem");
    std::fill_n(o.padded.get(), size, 0.0F);  // planning wrote to it
  }

  void transform(Operand& o, const float* values) const {
#pragma omp parallel for num_threads(threads_)
    for (std::int64_t row = 0; row < o.planes * o.rows; ++row)
      std::memcpy(padded_row(o, row), values + row * o.columns,
                  sizeof(float) * static_cast<std::size_t>(o.columns));
    execute_(o.plan);
    transpose(o.by_plane.get(), o.spectra.get(), o.planes, frequencies_);
  }

  // to[j, i] = from[i, j], in squares that stay in L1.
  void transpose(const fftwf_complex* from, fftwf_complex* to, std::int64_t rows,
                 std::int64_t columns) const {
    constexpr std::int64_t side = 16;
#pragma omp parallel for num_threads(threads_)
    for (std::int64_t first = 0; first < rows; first += side)
      for (std::int64_t left = 0; left < columns; left += side)
        for (std::int64_t i = first; i < std::min(first + side, rows); ++i)
          for (std::int64_t j = left; j < std::min(left + side, columns); ++j)
            std::memcpy(to[j * rows + i], from[i * columns + j], sizeof(fftwf_complex));
  }

  void unpad(Operand& o, float* values) const {
    const float scale = 1.0F / static_cast<float>(rows_ * columns_);  // FFTW's is 1
#pragma omp parallel for num_threads(threads_)
    for (std::int64_t row = 0; row < o.planes * o.rows; ++row)
      for (std::int64_t j = 0; j < o.columns; ++j)
        values[row * o.columns + j] = scale * padded_row(o, row)[j];
  }

  float* padded_row(Operand& o, std::int64_t row) const {
    return o.padded.get() + (row / o.rows * rows_ + o.top + row % o.rows) * columns_ + o.left;
  }

  // The products of one frequency, as matrices X [batch, in], W [out, in], Y [batch, out] of a
  // group. Conjugates correlate, plain products convolve.
  void multiply() const {
    constexpr int row_major = 101, plain = 111, conjugate_transpose = 113;
    const float one[] = {1, 0}, zero[] = {0, 0};
    const int batch = static_cast<int>(p_.batch), in = static_cast<int>(p_.group_in());
    const int out = static_cast<int>(p_.group_out()), all_in = static_cast<int>(p_.in_channels);
    const int all_out = static_cast<int>(p_.out_channels);
#pragma omp parallel for num_threads(threads_)
    for (std::int64_t f = 0; f < frequencies_; ++f)
      for (std::int64_t group = 0; group < p_.groups; ++group) {
        fftwf_complex* x = x_.spectra.get() + f * x_.planes + group * in;
        fftwf_complex* w = w_.spectra.get() + f * w_.planes + group * out * in;
        fftwf_complex* y = y_.spectra.get() + f * y_.planes + group * out;
        if (p_.direction == Direction::forward)
          multiply_(row_major, plain, conjugate_transpose, batch, out, in, one, x, all_in, w, in,
                    zero, y, all_out);
        else if (p_.direction == Direction::backward_data)
          multiply_(row_major, plain, plain, batch, in, out, one, y, all_out, w, in, zero, x,
                    all_in);
        else
          multiply_(row_major, conjugate_transpose, plain, out, in, batch, one, y, all_out, x,
                    all_in, zero, w, in);
      }
  }

  // This is the declaration of cblas.h; the order and the transposes are its enums.
  using Cgemm = void(int order, int transpose_a, int transpose_b, int m, int n, int k,
                     const void* alpha, const void* a, int lda, const void* b, int ldb,
                     const void* beta, void* c, int ldc);

  Problem p_;
  int threads_;
  SharedLibrary fftw_{"libfftw3f.so.3", own_functions_first},
      fftw_threads_{"libfftw3f_omp.so.3", own_functions_first};
  SharedLibrary blas_ =
      (choose_openblas_kernels(), SharedLibrary("libopenblas.so.0", own_functions_first));
  decltype(&fftwf_init_threads) init_threads_ = fftw_threads_["fftwf_init_threads"];
  decltype(&fftwf_plan_with_nthreads) set_fftw_threads_ = fftw_threads_["fftwf_plan_with_nthreads"];
  decltype(&fftwf_set_timelimit) set_time_limit_ = fftw_["fftwf_set_timelimit"];
  decltype(&fftwf_plan_many_dft_r2c) plan_forward_ = fftw_["fftwf_plan_many_dft_r2c"];
  decltype(&fftwf_plan_many_dft_c2r) plan_inverse_ = fftw_["fftwf_plan_many_dft_c2r"];
  decltype(&fftwf_execute) execute_ = fftw_["fftwf_execute"];
  decltype(&fftwf_destroy_plan) destroy_ = fftw_["fftwf_destroy_plan"];
  Cgemm* multiply_ = blas_["cblas_cgemm"];
  void (*set_blas_threads_)(int) = blas_["openblas_set_num_threads"];

  std::int64_t rows_ = fast_size(p_.height + 2 * p_.pad_h);
  std::int64_t columns_ = fast_size(p_.width + 2 * p_.pad_w);
  std::int64_t frequencies_ = rows_ * (columns_ / 2 + 1);
  Operand x_{p_.batch * p_.in_channels, p_.height, p_.width, p_.pad_h, p_.pad_w};
  Operand w_{p_.out_channels * p_.group_in(), p_.kernel_h, p_.kernel_w, 0, 0};
  Operand y_{p_.batch * p_.out_channels, p_.out_h(), p_.out_w(), 0, 0};
};

constexpr VariantInfo info{
    .name = "fftw",
    .technique = Technique::vendor,
    .adds = "FFTW's transforms of whole images, one complex product of OpenBLAS per frequency",
    .threaded = true,
    .bound_factor = 64,  // as fft
    .normwise = true,
};

const Registration registration{info, make_plan<Convolution, Fftw>};

}  // namespace
}  // namespace stepladder::convolution
