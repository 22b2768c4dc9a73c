// The ring with messages that zstd compresses without loss: the result of `ring`, bit for bit. The
// bytes of each message are first sorted by significance into four planes (byte_planes.hpp): the
// exponents of gradients have few different values, their significands look random. A plane that
// does not become shorter is sent as it is.
//
//     T = 2 (p-1) alpha + 2 (p-1)/p s n beta + (p-1)/p n (gamma + c)    s: share that remains;
//                                                                       c: to compress a byte
//
// s depends on the data: 0.85 for the uniform values of the benchmark, 0.87 to 0.9 for normal ones,
// 0.75 to 0.81 if half of these are zero. The cost function has the first.
//
// Identical bits: as in ring; nothing is lost.
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/compressed/byte_planes.hpp"
#include "kernels/all_reduce/mpi/compressed/compressed_ring.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr int level = -1;  // fast: Huffman codes, and few searches for repetitions

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class LosslessCodec {
 public:
  explicit LosslessCodec(std::int64_t longest)
      : longest_(longest),
        compressor_(ZSTD_createCCtx()),
        decompressor_(ZSTD_createDCtx()),
        planes_(aligned_array<std::byte>(4 * longest)),
        decoded_(aligned_array<float>(longest)) {
    if (compressor_ == nullptr || decompressor_ == nullptr) throw std::bad_alloc{};
    // The contexts allocate when they are first used.
    std::fill_n(decoded_.get(), longest, 0.0f);
    const auto message = aligned_array<std::byte>(capacity());
    const std::int64_t bytes = encode(decoded_.get(), longest, message.get());
    decode(message.get(), bytes, decoded_.get(), longest);
  }

  // A plane that does not become shorter needs no more than its own length.
  std::int64_t capacity() const {
    return header_bytes + 3 * longest_ +
           static_cast<std::int64_t>(ZSTD_compressBound(static_cast<std::size_t>(longest_)));
  }

  std::int64_t encode(const float* values, std::int64_t count, std::byte* message) {
    split_planes(values, count, planes_.get());
    Header header{};
    std::byte* to = message + header_bytes;
    for (std::size_t plane = 0; plane < 4; ++plane) {
      const std::byte* from = planes_.get() + static_cast<std::int64_t>(plane) * count;
      const auto length = static_cast<std::size_t>(count);
      std::size_t bytes =
          ZSTD_compressCCtx(compressor_.get(), to, ZSTD_compressBound(length), from, length, level);
      if (ZSTD_isError(bytes) != 0 || bytes >= length) {
        std::memcpy(to, from, length);
        bytes = length;
      }
      header[plane] = bytes;
      to += bytes;
    }
    std::memcpy(message, header.data(), header_bytes);
    return to - message;
  }

  void decode(const std::byte* message, std::int64_t, float* values, std::int64_t count) {
    Header header{};
    std::memcpy(header.data(), message, header_bytes);
    const std::byte* from = message + header_bytes;
    for (std::size_t plane = 0; plane < 4; ++plane) {
      std::byte* to = planes_.get() + static_cast<std::int64_t>(plane) * count;
      const auto length = static_cast<std::size_t>(count);
      if (header[plane] == length)
        std::memcpy(to, from, length);
      else if (ZSTD_decompressDCtx(decompressor_.get(), to, length, from, header[plane]) != length)
        throw std::runtime_error("zstd cannot decompress a message");
      from += header[plane];
    }
    join_planes(planes_.get(), count, values);
  }

  void add(const std::byte* received, std::int64_t bytes, const float* values, float* sum,
           std::int64_t count) {
    decode(received, bytes, decoded_.get(), count);
    all_reduce::add(decoded_.get(), values, sum, count);
  }
  std::int64_t add_and_encode(const std::byte* received, std::int64_t bytes, const float* values,
                              float* sum, std::int64_t count, std::byte* message) {
    add(received, bytes, values, sum, count);
    return encode(sum, count, message);
  }

 private:
  using Header = std::array<std::uint64_t, 4>;  // bytes of each plane as sent
  static constexpr std::int64_t header_bytes = sizeof(Header);

  std::int64_t longest_;
  std::unique_ptr<ZSTD_CCtx, FreeContext> compressor_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> decompressor_;
  AlignedArray<std::byte> planes_;  // [4][longest]
  AlignedArray<float> decoded_;     // [longest]
};

// Measured, in roundings to bf16 in the caches: 64 to compress, 20 to decompress.
double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  return (c.p - 1) * (2 * c.flat().shift(0.85 * chunk) + c.l.add(chunk)) +
         c.l.code * (64 * c.n + 20 * (2 * c.n - chunk));
}

constexpr VariantInfo info{
    .name = "lossless_ring",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "zstd compresses each message, sorted into planes of bytes; the result is exact",
    .idea = Idea::compression,
    .encoded_share = 0.85,
};

const Registration registration{info, make_plan<AllReduce, CompressedRing<LosslessCodec>>, cost};

}  // namespace
}  // namespace stepladder::all_reduce
