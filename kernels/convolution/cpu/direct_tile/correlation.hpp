// forward and backward_data without unfolding: the source is read in place, and products with
// padding are skipped. Where that takes longer, a copy with zeros around each image is read.
//
//   tile of the target: up to 14 pixels x 2 vectors of channels, in registers
//
//       weights of a tap   AVX-512, per source channel and tap: 2 vector loads of weights and, per
//         w0  | w1         pixel, 1 broadcast for 2 FMAs. 28 accumulators, 2 vectors of weights and
//   x0    acc | acc        1 pixel take 31 of 32 registers.
//   x1    acc | acc
//   …     …   | …          The pixels are of one row, or of several short rows: 2 x 7 or 4 x 3.
//   x13   acc | acc
//
// A tap that reads padding for all pixels is skipped; one that does for some pixels updates the
// others, with code of its own for the usual sets of them. Lanes are channels of the target, so the
// finished tile is transposed when it is stored. Weights of a panel that do not fit L2 are passed
// in parts of the source channels. Elements of two numbers hold two source channels.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/direct_tile/elements.hpp"
#include "kernels/convolution/cpu/pack_filters.hpp"
#include "kernels/convolution/cpu/strided_copy.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <class Elements>
class DirectTileCorrelation final : public ThreadedCorrelation {
 public:
  DirectTileCorrelation(const Problem& problem, int threads)
      : ThreadedCorrelation(problem, threads),
        source_elements_(ceil_div(source_channels_, Elements::numbers)),
        panel_(target_channels_ > lanes ? 2 * lanes : lanes) {
    for (const Correlation& each : correlations_.all) {
      add_sub_correlation(each.h, each.w);
      if constexpr (Elements::numbers > 1)
        elements_size_ = std::max({elements_size_, source_elements_ * each.h.source * each.w.source,
                                   Elements::numbers * each.h.taps * each.w.taps * panel_});
    }
    if (Elements::numbers == 1 && sub_correlations_.size() == 1) pad_if_faster();
    place_weights();
    packed_ = aligned_array<float>(static_cast<std::size_t>(packed_size_));
    std::fill_n(packed_.get(), packed_size_, 0.0F);
    part_ = aligned_array<float>(static_cast<std::size_t>(threads * part_size_));
    std::fill_n(part_.get(), threads * part_size_, 0.0F);
    elements_ = aligned_array<float>(static_cast<std::size_t>(threads * elements_size_));
    if (is_padded_) std::fill_n(elements_.get(), threads * elements_size_, 0.0F);
    sums_ = aligned_array<float>(static_cast<std::size_t>(threads * sums_size_));
  }

 private:
  void pack(int thread, const float* weights) override {
    if (thread == 0) weights_ = weights;
    if (packs_late_) return;
    if (shares_packing()) {
      const Range part = partition(blocks() * source_elements_, threads_, thread);
      for (std::int64_t item = part.begin, end = 0; item < part.end; item = end) {
        const std::int64_t block = item / source_elements_, first = block * source_elements_;
        end = std::min(part.end, first + source_elements_);
        pack_shared(block, {item - first, end - first}, thread, weights, packed_.get());
      }
      return;
    }
    for (const SubCorrelation& sub : sub_correlations_) pack(sub, thread, weights);
  }
  void correlate(int thread, const float* source, float* target) override {
    const std::int64_t turns = packs_late_ ? blocks() : 1;
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      bool is_packed = !packs_late_ || !shares_packing();
      for (const SubCorrelation& sub : sub_correlations_) {
        const std::int64_t items = p_.batch * blocks() * sub.rows;
        const Range mine = partition(items, threads_, thread), all = partition(items, turns, turn);
        const Range part{std::max(mine.begin, all.begin), std::min(mine.end, all.end)};
        if (!is_packed && part.begin < part.end) {
          pack_shared(turn, {0, source_elements_}, thread, weights_, part_of(thread));
          is_packed = true;
        }
        correlate(sub, part, thread, source, target);
      }
    }
  }

  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_pixels =
      vector_registers == 32 ? 14 : 6;                              // 28 or 12 accumulators
  static constexpr std::int64_t max_floats_of_weights = 112 << 10;  // 448 KiB, in L2
  static constexpr std::int64_t max_floats_near = 16 << 10;         // 64 KiB, without prefetch
  // 192 KiB, beside them: of sums, or of a padded copy of an image.
  static constexpr std::int64_t max_floats_beside = 48 << 10;

  // Consecutive rows, or columns, of the target in one tile.
  struct Segment {
    std::int64_t first, size;
  };

  // A tap that reads the source, not padding, for some pixels of a tile.
  struct Tap {
    std::uint16_t readers;  // a bit for each of these pixels
    std::int16_t edge;      // with these readers, or no_edge
    std::int32_t weights;   // offset in the weights of a source element
    std::int64_t source;    // offset from what tap (0, 0) of pixel 0 reads
    bool operator==(const Tap&) const = default;
  };
  static_assert(max_pixels <= 16);  // bits of readers

  // Rows x columns. Pixel i is in row i / columns.size, column i % columns.size.
  struct TileShape {
    Segment rows, columns;
    std::int64_t taps;  // index in taps_
    std::int64_t runs;  // of pixels that are w.stride apart
    bool is_full;       // every tap reads the source for all pixels, and their weights have no gaps
    std::array<std::int64_t, max_pixels> offsets;  // of each pixel's source from pixel 0's
  };

  // forward, or one class of pixels of backward_data (axis.hpp).
  struct SubCorrelation {
    Axis h, w;
    std::int64_t rows, columns;    // tiles in each
    std::vector<TileShape> tiles;  // [rows, columns]
    // Offset of its weights, [blocks, source elements, taps, panel]. If packing is late and shared:
    // of those of one block, in what a thread packs.
    std::int64_t packed;
    // All images pass one panel before the next: the weights do not fit L2, and those of a panel
    // are larger than an image. If not even these fit: passes over parts of the source channels.
    bool by_panel;
    std::int64_t passes;
  };

  std::int64_t panels() const { return ceil_div(target_channels_, panel_); }
  std::int64_t source_plane() const {
    return correlations_.all.front().h.source * correlations_.all.front().w.source;
  }
  std::int64_t blocks() const { return p_.groups * panels(); }  // panels of all groups

  // Each class of backward_data reads other taps of the same filters: these are transposed once.
  bool shares_packing() const { return Elements::numbers == 1 && sub_correlations_.size() > 1; }

  // Between passes, the sums of as many tile rows as this are kept, each in so many floats.
  std::int64_t sums_of_row(const SubCorrelation& sub) const {
    return sub.columns * max_pixels * panel_;
  }
  std::int64_t rows_at_once(const SubCorrelation& sub) const {
    return std::clamp<std::int64_t>(max_floats_beside / sums_of_row(sub), 1, p_.batch * sub.rows);
  }

  // The pixels of an axis in segments of nearly the same size, `max_size` at most.
  static std::vector<Segment> segments_of(const Axis& axis, std::int64_t max_size) {
    std::vector<Segment> all;
    const std::int64_t count = ceil_div(axis.pixels, max_size);
    for (std::int64_t i = 0; i < count; ++i) {
      const Range part = partition(axis.pixels, count, i);
      all.push_back({part.begin, part.end - part.begin});
    }
    return all;
  }

  void add_sub_correlation(const Axis& h, const Axis& w) {
    const std::int64_t weights = source_elements_ * h.taps * w.taps * panel_;  // of a panel
    SubCorrelation sub{h, w, 0, 0, {}, 0, false, 1};
    // A thread with half a panel would wait for the others, and so would those without a panel.
    const bool even =
        threads_ == 1 || panels() > 5 || ceil_div(target_channels_, lanes) == 2 * panels();
    sub.by_panel = Elements::numbers == 1 && even && panels() * weights > max_floats_of_weights &&
                   (p_.batch == 1 || weights > source_channels_ * h.source * w.source);
    if (sub.by_panel)
      sub.passes = std::min(ceil_div(weights, max_floats_of_weights), source_elements_);
    const std::vector<Segment> columns = segments_of(w, max_pixels);
    // Several rows if they are short, but with four tiles per thread, or some would wait for one.
    std::int64_t size = max_pixels / ceil_div(w.pixels, std::ssize(columns));
    if (threads_ > 1)
      size = std::clamp<std::int64_t>(p_.batch * p_.groups * panels() * h.pixels / (4 * threads_),
                                      1, size);
    const std::vector<Segment> rows = segments_of(h, size);
    sub.rows = std::ssize(rows), sub.columns = std::ssize(columns);
    for (const Segment& row : rows)
      for (const Segment& column : columns)
        sub.tiles.push_back(tile_shape({h, w}, {h, w}, row, column));
    if (sub.passes > 1) sums_size_ = std::max(sums_size_, sums_of_row(sub) * rows_at_once(sub));
    sub_correlations_.push_back(std::move(sub));
  }

  // Where weights are packed: all at first, or by each thread, when it needs them, those of a pass,
  // or of a panel if packing is shared. Threads that share a panel would each pack all of it.
  void place_weights() {
    packs_late_ = std::ranges::all_of(sub_correlations_, [&](const SubCorrelation& sub) {
      return sub.by_panel && (sub.passes == 1 || rows_at_once(sub) == p_.batch * sub.rows);
    });
    if (shares_packing() && threads_ > blocks()) packs_late_ = false;
    for (SubCorrelation& sub : sub_correlations_) {
      const std::int64_t filter = sub.h.taps * sub.w.taps * panel_;
      if (!packs_late_) {
        sub.packed = packed_size_;
        packed_size_ += blocks() * source_elements_ * filter;
      } else if (shares_packing()) {
        sub.packed = part_size_;
        part_size_ += source_elements_ * filter;
      } else {
        part_size_ = ceil_div(source_elements_, sub.passes) * filter;
      }
    }
    if (shares_packing()) {
      filters_ = part_size_;
      part_size_ += p_.kernel_h * p_.kernel_w * panel_;
    }
  }

  // axes: of the source. stored: of the array that is read, the source or its padded copy.
  TileShape tile_shape(const Correlation& axes, const Correlation& stored, const Segment& rows,
                       const Segment& columns) {
    const auto& [h, w] = axes;
    const std::int64_t pitch = stored.w.source;
    TileShape tile{rows, columns, 0, rows.size, true, {}};
    const std::int64_t pixels = rows.size * columns.size;
    for (std::int64_t i = 0; i < pixels; ++i)
      tile.offsets[static_cast<std::size_t>(i)] =
          i / columns.size * h.stride * pitch + i % columns.size * w.stride;
    // Whole rows of a source without gaps between them are one long row.
    if (columns.size * w.stride == h.stride * pitch) tile.runs = 1;
    const auto readers = [](const Axis& axis, const Segment& segment, std::int64_t tap) {
      return valid_range(axis.source, segment.size, axis.stride,
                         segment.first * axis.stride + tap + axis.origin);
    };
    std::vector<Tap> taps;
    for (std::int64_t t = 0; t < h.taps; ++t)
      for (std::int64_t u = 0; u < w.taps; ++u) {
        const Range in_rows = readers(h, rows, t), in_columns = readers(w, columns, u);
        std::uint32_t bits = 0;
        for (std::int64_t r = in_rows.begin; r < in_rows.end; ++r)
          for (std::int64_t q = in_columns.begin; q < in_columns.end; ++q)
            bits |= 1U << (r * columns.size + q);
        if (bits == 0) continue;
        if (pitch != w.source) bits = (1U << pixels) - 1;
        const auto weights = static_cast<std::int32_t>((t * w.taps + u) * panel_);
        std::int64_t edge = 0;
        while (edge < edges(tile.runs) && readers_at(edge, pixels, tile.runs) != bits) ++edge;
        if (edge == edges(tile.runs)) edge = no_edge;
        tile.is_full = tile.is_full && bits == (1U << pixels) - 1 &&
                       (taps.empty() || taps.back().weights + panel_ == weights);
        taps.push_back({static_cast<std::uint16_t>(bits), static_cast<std::int16_t>(edge), weights,
                        t * pitch + u});
      }
    tile.is_full = tile.is_full && !taps.empty();
    // Most tiles have the taps of others.
    tile.taps = std::ranges::find(taps_, taps) - taps_.begin();
    if (tile.taps == std::ssize(taps_)) taps_.push_back(std::move(taps));
    return tile;
  }

  // The axis of a copy of the source with zeros around it.
  static Axis padded(const Axis& axis) {
    Axis all = axis;
    const std::int64_t end = (axis.pixels - 1) * axis.stride + axis.taps + axis.origin;
    all.origin = std::max<std::int64_t>(axis.origin, 0);
    all.source = std::max(end, axis.source) + all.origin - axis.origin;
    return all;
  }

  // Time of the tiles per panel and source channel: 2 for a product of vectors, 1 for a test of a
  // pixel. A jump to the code of an edge costs more in two runs: one for each source channel.
  std::int64_t work_of(const std::vector<TileShape>& tiles, std::int64_t step) const {
    std::int64_t work = 0;
    for (const TileShape& tile : tiles)
      for (const Tap& tap : taps_[static_cast<std::size_t>(tile.taps)]) {
        const std::int64_t pixels = tile.rows.size * tile.columns.size;
        const std::int64_t readers = std::popcount(tap.readers);
        work += 2 * readers * panel_ / lanes;
        if (readers == pixels) continue;
        const bool is_jump = tap.edge != no_edge && has_edges(pixels, tile.runs, step);
        work += !is_jump ? pixels : tile.runs == 1 ? 4 : 20;
      }
    return work;
  }

  // Where tests and jumps take longer than products with zeros, and copies of images stay in L2.
  // One image for several threads would be copied by each.
  void pad_if_faster() {
    SubCorrelation& sub = sub_correlations_.front();
    const Correlation axes{sub.h, sub.w}, stored{padded(sub.h), padded(sub.w)};
    const std::int64_t size = source_channels_ * stored.h.source * stored.w.source + lanes;
    if (sub.by_panel || stored.w.source == sub.w.source || size > max_floats_beside ||
        p_.batch * p_.groups < threads_)
      return;
    std::vector<TileShape> tiles;
    for (const TileShape& tile : sub.tiles)
      tiles.push_back(tile_shape(axes, stored, tile.rows, tile.columns));
    // The copy takes the time of some percent.
    if (50 * work_of(tiles, sub.w.stride) >= 49 * work_of(sub.tiles, sub.w.stride)) return;
    sub.tiles = std::move(tiles), sub.h = stored.h, sub.w = stored.w;
    is_padded_ = true;
    elements_size_ = size;
  }

  bool reads_copies() const { return Elements::numbers > 1 || is_padded_; }
  float* part_of(int thread) const { return part_.get() + thread * part_size_; }
  float* elements_of(int thread) const { return elements_.get() + thread * elements_size_; }

  // Packs filters of a panel for all sub-correlations, at to + sub.packed.
  void pack_shared(std::int64_t block, const Range& sources, int thread, const float* weights,
                   float* to) {
    const std::int64_t plane = p_.kernel_h * p_.kernel_w, first = block % panels() * panel_;
    const std::int64_t channels = std::min(panel_, target_channels_ - first);
    const std::int64_t at = packs_late_ ? 0 : block * source_elements_;
    float* filters = part_of(thread) + filters_;  // [kernel_h, kernel_w, panel]
    for (std::int64_t c = sources.begin; c < sources.end; ++c) {
      const std::int64_t source = block / panels() * source_channels_ + c;
      transpose(weights + (source * target_channels_ + first) * plane, plane, filters, panel_,
                channels, plane);
      for (const SubCorrelation& sub : sub_correlations_) {
        const Axis &h = sub.h, &w = sub.w;
        float* tap = to + sub.packed + (at + c) * h.taps * w.taps * panel_;
        for (std::int64_t t = 0; t < h.taps; ++t)
          for (std::int64_t u = 0; u < w.taps; ++u, tap += panel_) {
            const std::int64_t row = h.kernel_first + t * h.kernel_step;
            const std::int64_t column = w.kernel_first + u * w.kernel_step;
            std::copy_n(filters + (row * p_.kernel_w + column) * panel_, panel_, tap);
          }
      }
    }
  }

  // Lanes without a channel keep what they have: nobody stores their sums.
  void pack(const SubCorrelation& sub, int thread, const float* weights) {
    const std::int64_t filter = sub.h.taps * sub.w.taps * panel_;
    const Range part = partition(blocks() * source_elements_, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end;) {
      const std::int64_t block = item / source_elements_, first = block % panels() * panel_;
      // Elements of two numbers one by one, others of a block at once.
      const std::int64_t begin = item - block * source_elements_,
                         end = Elements::numbers > 1 ? begin + 1
                                                     : std::min(part.end - block * source_elements_,
                                                                source_elements_);
      const Range sources{begin * Elements::numbers,
                          std::min(end * Elements::numbers, source_channels_)};
      const Range targets{first, std::min(first + panel_, target_channels_)};
      float* packed = packed_.get() + sub.packed + item * filter;
      pack_filters(p_, {sub.h, sub.w}, weights, block / panels(), sources, targets, panel_,
                   Elements::numbers > 1 ? elements_of(thread) : packed);
      if constexpr (Elements::numbers > 1) {
        const float* first_filter = elements_of(thread);
        const bool is_pair = sources.end - sources.begin > 1;
        Elements::make(first_filter, is_pair ? first_filter + filter : nullptr, filter, packed);
      }
      item += end - begin;
    }
  }

  // Makes elements of the source of one image and group, [source elements, height, width], or its
  // padded copy.
  void make_elements(int thread, const float* source) const {
    const auto& [h, w] = correlations_.all.front();
    float* to = elements_of(thread);
    if constexpr (Elements::numbers > 1) {
      const std::int64_t plane = h.source * w.source;
      for (std::int64_t c = 0; c < source_channels_; c += 2, source += 2 * plane, to += plane)
        Elements::make(source, c + 1 < source_channels_ ? source + plane : nullptr, plane, to);
    } else {
      const SubCorrelation& sub = sub_correlations_.front();
      to += (sub.h.origin - h.origin) * sub.w.source + sub.w.origin - w.origin;
      for (std::int64_t c = 0; c < source_channels_; ++c, to += sub.h.source * sub.w.source)
        for (std::int64_t row = 0; row < h.source; ++row, source += w.source)
          gather_strided(source, 1, w.source, to + row * sub.w.source);
    }
  }

  // Computes a thread's part of the tiles of all images, groups and panels.
  void correlate(const SubCorrelation& sub, const Range& part, int thread, const float* source,
                 float* target) const {
    const std::int64_t rows = sub.rows;
    const std::int64_t run = sub.by_panel ? p_.batch * rows : rows;  // tile rows of one panel
    for (std::int64_t item = part.begin; item < part.end;) {
      const std::int64_t block = item / run, first = item % run, index = block % panels();
      const std::int64_t image_group = block / panels();  // image 0 if by_panel
      const std::int64_t last = std::min(run, first + part.end - item);
      if (reads_copies() && (item == part.begin || index == 0))
        make_elements(thread, source + image_group * source_channels_ * source_plane());
      const std::int64_t at_once = sub.passes > 1 ? rows_at_once(sub) : run;
      for (std::int64_t row = first; row < last; row += at_once)
        for (std::int64_t pass = 0; pass < sub.passes; ++pass)
          correlate({&sub, image_group, index, {row, std::min(last, row + at_once)}, pass}, thread,
                    source, target);
      item += last - first;
    }
  }

  // Tile rows of one panel that one pass computes. Row i is row i % (rows of an image) of image i /
  // (rows of an image), counted from image_group.
  struct Pass {
    const SubCorrelation* sub;
    std::int64_t image_group, index;
    Range rows;
    std::int64_t pass;
  };

  void correlate(const Pass& pass, int thread, const float* source, float* target) const {
    static constexpr auto tiles = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Tile, sizeof...(T)>{&tile<T / 2 + 1, T % 2 + 1>...};
    }
    (std::make_index_sequence<2 * max_pixels>{});
    const SubCorrelation& sub = *pass.sub;
    const std::int64_t rows = sub.rows, filter = sub.h.taps * sub.w.taps * panel_;
    const std::int64_t plane = sub.h.source * sub.w.source;  // of what the tiles read
    const std::int64_t target_plane = sub.h.target * sub.w.target;
    const std::int64_t channels = std::min(panel_, target_channels_ - pass.index * panel_);
    const Range elements = partition(source_elements_, sub.passes, pass.pass);
    const std::int64_t group = pass.image_group % p_.groups;
    const float* weights = nullptr;
    if (!packs_late_) {
      weights = packed_.get() + sub.packed +
                ((group * panels() + pass.index) * source_elements_ + elements.begin) * filter;
    } else if (shares_packing()) {
      weights = part_of(thread) + sub.packed + elements.begin * filter;
    } else {
      const std::int64_t first = pass.index * panel_;
      pack_filters(p_, {sub.h, sub.w}, weights_, group, elements, {first, first + channels}, panel_,
                   part_of(thread));
      weights = part_of(thread);
    }
    float* sums = sub.passes > 1 ? sums_.get() + thread * sums_size_ : nullptr;
    const std::int64_t image_group = pass.image_group + pass.rows.begin / rows * p_.groups;
    const float* image =
        reads_copies() ? elements_of(thread) : source + image_group * source_channels_ * plane;
    image += elements.begin * plane + sub.h.origin * sub.w.source + sub.w.origin;
    float* target_image = target +
                          (image_group * target_channels_ + pass.index * panel_) * target_plane +
                          sub.w.first;
    std::int64_t row = pass.rows.begin % rows;
    for (std::int64_t count = pass.rows.end - pass.rows.begin; count > 0; --count, ++row) {
      if (row == rows) {
        row = 0;
        image += p_.groups * source_channels_ * plane;
        target_image += p_.groups * target_channels_ * target_plane;
      }
      const TileShape* shapes = sub.tiles.data() + row * sub.columns;
      for (const TileShape& shape : std::span(shapes, static_cast<std::size_t>(sub.columns))) {
        const Segment &row_segment = shape.rows, &column_segment = shape.columns;
        const TileAt at{.sub = &sub,
                        .shape = &shape,
                        .taps = taps_[static_cast<std::size_t>(shape.taps)],
                        .source = image + row_segment.first * sub.h.stride * sub.w.source +
                                  column_segment.first * sub.w.stride,
                        .weights = weights,
                        .target = target_image +
                                  (sub.h.first + row_segment.first * sub.h.step) * sub.w.target +
                                  column_segment.first * sub.w.step,
                        .channels = channels,
                        .panel = panel_,
                        .is_first = pass.pass == 0,
                        .is_last = pass.pass + 1 == sub.passes};
        const std::int64_t pixels = row_segment.size * column_segment.size;
        const std::int64_t tile = (pixels - 1) * 2 + (channels > lanes ? 1 : 0);
        tiles[static_cast<std::size_t>(tile)](at, elements.end - elements.begin, sums);
        if (sums != nullptr) sums += max_pixels * panel_;
      }
    }
  }

  // A tile of one image and one panel of channels.
  struct TileAt {
    const SubCorrelation* sub;
    const TileShape* shape;
    std::span<const Tap> taps;
    const float* source;   // the first element that tap (0, 0) of pixel 0 reads; may be outside
    const float* weights;  // [source elements, taps, panel]
    float* target;         // pixel 0 of the panel's first channel
    std::int64_t channels, panel;
    bool is_first, is_last;  // pass over the source elements
  };

  // Adds to sums, or sets them in the first of several passes. The last one stores them.
  using Tile = void (*)(const TileAt&, std::int64_t source_elements, float* sums);

  // Readers for which the loops below have code of their own, in tiles of one run of pixels or of
  // two of half the size. Edge 0 has all pixels; others lack up to 3 at an end of each run, or a
  // whole run, or both.
  static constexpr std::int64_t no_edge = -1, sides = 7;
  static constexpr std::int64_t edges(std::int64_t runs) {
    return runs == 2 ? 3 * sides : runs == 1 ? sides : 0;
  }
  static constexpr std::uint32_t readers_at(std::int64_t edge, std::int64_t pixels,
                                            std::int64_t runs) {
    const std::int64_t columns = pixels / runs, side = edge % sides, run = edge / sides;
    const std::uint32_t all = (1U << columns) - 1;
    const std::uint32_t of_run = side > 3 ? all >> (side - 3) : all >> side << side;
    if (runs == 1) return of_run;
    return (run == 2 ? 0 : of_run) | (run == 1 ? 0 : of_run << columns);
  }

  // Whether tiles have code for edges, and for offsets of pixels that are constants. Smaller tiles
  // are rare: maps of a few pixels.
  static constexpr bool has_edges(std::int64_t pixels, std::int64_t runs, std::int64_t step) {
    return 3 * pixels >= max_pixels && (runs == 1 || runs == 2) && step <= 2;
  }

  // Calls add with the readers of a tap as a constant, or with 0 if these have no code.
  template <std::int64_t Pixels, std::int64_t runs, class Add>
  [[gnu::always_inline]] static void with_readers(const Tap& tap, const Add& add) {
    constexpr std::uint32_t all = (1U << Pixels) - 1;
    constexpr std::int64_t others = std::max<std::int64_t>(edges(runs) - 1, 0);
    const auto is_edge = [&]<std::size_t... E>(std::index_sequence<E...>)
        __attribute__((always_inline)) {
      return ((readers_at(E + 1, Pixels, runs) != 0 && tap.edge == E + 1 &&
               (add.template operator()<readers_at(E + 1, Pixels, runs)>(), true)) ||
              ...);
    };
    if (tap.readers == all)
      add.template operator()<all>();
    else if (!is_edge(std::make_index_sequence<others>{}))
      add.template operator()<0>();
  }

  // I runs over the accumulators, pixel by pixel, V over the vectors of channels. runs, step: the
  // tile's and w.stride (one run only if it is full), or runs == 0, which reads an offset from
  // memory for each pixel. is_full: the tile's, which saves loads of the readers of taps and of the
  // offsets of their weights. Not inline: the layout of one loop would depend on the others.
  template <std::int64_t Pixels, std::int64_t Vectors, std::int64_t runs, std::int64_t step,
            bool is_full, std::size_t... I, std::size_t... V>
  [[gnu::noinline]] static void multiply(std::index_sequence<I...>, std::index_sequence<V...>,
                                         const TileAt& at, std::int64_t source_elements,
                                         float* block) {
    const Axis &h = at.sub->h, &w = at.sub->w;
    const std::int64_t plane = h.source * w.source, filter = h.taps * w.taps * at.panel;
    const bool is_far = source_elements * plane > max_floats_near;
    const std::int64_t* offsets = at.shape->offsets.data();
    constexpr std::int64_t columns = runs > 0 ? Pixels / runs : 1;
    const Tap *first = at.taps.data(), *last = first + at.taps.size();
    const float *x_c = at.source, *weights_c = at.weights;
    Vector acc[] = {((void)I, Vector(0.0f))...};
    if (is_full) weights_c += first->weights;
    for (std::int64_t c = 0; c < source_elements; ++c, x_c += plane, weights_c += filter) {
      const float* weights = weights_c;
      for (const Tap* tap = first; tap < last; ++tap) {
        const float* x = x_c + tap->source;
        if (!is_full) weights = weights_c + tap->weights;
        if (is_far) {  // a row of the fourth next channel
          __builtin_prefetch(x + 4 * plane);
          __builtin_prefetch(x + 4 * plane + Pixels);
        }
        const float* second = x;
        if constexpr (runs == 2) {
          second += offsets[columns];
          // A pointer of its own: the compiler would add two offsets for each pixel.
          asm("" : "+r"(second));
        }
        const Vector w_u[] = {Vector::load_aligned(weights + V * lanes)...};
        const auto add_pixel = [&]<std::size_t i>() __attribute__((always_inline)) {
          constexpr auto pixel = static_cast<std::int64_t>(i / Vectors);
          const float* from = x + pixel * step;
          if constexpr (runs == 0) from = x + offsets[pixel];
          if constexpr (runs == 2 && pixel >= columns) from = second + (pixel - columns) * step;
          acc[i] = Elements::add_products(acc[i], Vector(*from), w_u[i % Vectors]);
        };
        if constexpr (is_full) {
          (add_pixel.template operator()<I>(), ...);
          weights += at.panel;
        } else {
          with_readers<Pixels, runs>(
              *tap, [&]<std::uint32_t readers>() __attribute__((always_inline)) {
                const std::uint32_t pixels = readers != 0 ? readers : tap->readers;
                ((pixels >> I / Vectors & 1U ? add_pixel.template operator()<I>() : void()), ...);
              });
        }
      }
    }
    (acc[I].store_aligned(block + I * lanes), ...);
  }

  // The same for one run of pixels that is not full. One tap after the other, each with many source
  // elements, because each tap jumps to the code for its readers.
  template <std::int64_t Pixels, std::int64_t Vectors, std::int64_t step, std::size_t... I,
            std::size_t... V>
  [[gnu::noinline]] static void multiply_by_taps(std::index_sequence<I...>,
                                                 std::index_sequence<V...>, const TileAt& at,
                                                 std::int64_t source_elements, float* block) {
    constexpr std::int64_t max_elements = 64;  // at once
    const Axis &h = at.sub->h, &w = at.sub->w;
    const std::int64_t plane = h.source * w.source, filter = h.taps * w.taps * at.panel;
    const bool is_far = source_elements * plane > max_floats_near;
    const float *x_c = at.source, *weights_c = at.weights;
    Vector acc[] = {((void)I, Vector(0.0f))...};
    for (std::int64_t left = source_elements; left > 0;
         left -= max_elements, x_c += max_elements * plane, weights_c += max_elements * filter) {
      const std::int64_t elements = std::min(left, max_elements);
      for (const Tap& tap : at.taps)
        with_readers<Pixels, 1>(
            tap, [&]<std::uint32_t readers>() __attribute__((always_inline)) {
              const float *x = x_c + tap.source, *weights = weights_c + tap.weights;
              for (std::int64_t c = elements; c > 0; --c, x += plane, weights += filter) {
                if (is_far) {
                  __builtin_prefetch(x + 4 * plane);
                  __builtin_prefetch(x + 4 * plane + Pixels);
                }
                const Vector w_u[] = {Vector::load_aligned(weights + V * lanes)...};
                const std::uint32_t pixels = readers != 0 ? readers : tap.readers;
                ((pixels >> I / Vectors & 1U
                      ? void(acc[I] = Elements::add_products(acc[I], Vector(x[I / Vectors * step]),
                                                             w_u[I % Vectors]))
                      : void()),
                 ...);
              }
            });
    }
    (acc[I].store_aligned(block + I * lanes), ...);
  }

  template <std::int64_t Pixels, std::int64_t Vectors>
  static void tile(const TileAt& at, std::int64_t source_elements, float* sums) {
    constexpr std::make_index_sequence<Pixels * Vectors> accumulators;
    constexpr std::make_index_sequence<Vectors> vectors;
    alignas(cache_line) float block[Pixels * Vectors * lanes];
    const auto multiply_as = [&]<std::int64_t runs, std::int64_t step>() {
      if constexpr (runs > 0)
        if (at.shape->is_full)
          return multiply<Pixels, Vectors, runs, step, true>(accumulators, vectors, at,
                                                             source_elements, block);
      if constexpr (runs == 1)
        multiply_by_taps<Pixels, Vectors, step>(accumulators, vectors, at, source_elements, block);
      else
        multiply<Pixels, Vectors, runs, step, false>(accumulators, vectors, at, source_elements,
                                                     block);
    };
    const std::int64_t runs = at.shape->runs, step = at.sub->w.stride;
    const auto multiply_tile = [&] {
      if constexpr (has_edges(Pixels, 1, 1)) {
        if (runs == 1 && step == 1) return multiply_as.template operator()<1, 1>();
        if (runs == 1 && step == 2) return multiply_as.template operator()<1, 2>();
        if constexpr (Pixels % 2 == 0) {
          if (runs == 2 && step == 1) return multiply_as.template operator()<2, 1>();
          if (runs == 2 && step == 2) return multiply_as.template operator()<2, 2>();
        }
      }
      multiply_as.template operator()<0, 1>();
    };
    multiply_tile();
    if (sums != nullptr) add_pass(at, block, Pixels * Vectors, sums);
    if (at.is_last) store<Pixels, Vectors * lanes>(block, at);
  }

  // Adds the sums of the passes before to those of this one, for the target or for the next pass.
  static void add_pass(const TileAt& at, float* block, std::int64_t vectors, float* sums) {
    for (std::int64_t i = 0; i < vectors * lanes; i += lanes) {
      Vector sum = Vector::load_aligned(block + i);
      if (!at.is_first) sum += Vector::load_aligned(sums + i);
      sum.store_aligned((at.is_last ? block : sums) + i);
    }
  }

  // block: [Pixels, pitch]
  template <std::int64_t Pixels, std::int64_t pitch>
  static void store(const float* block, const TileAt& at) {
    const Axis &h = at.sub->h, &w = at.sub->w;
    if (w.step > 1) return store_strided(block, pitch, at);
    const std::int64_t rows = at.shape->rows.size, columns = at.shape->columns.size;
    const std::int64_t plane = h.target * w.target;
    if (rows == 1 || (columns == w.target && h.step == 1)) {
      transpose(block, pitch, at.target, plane, Pixels, at.channels);
      return;
    }
    for (std::int64_t r = 0; r < rows; ++r, block += columns * pitch)
      transpose(block, pitch, at.target + r * h.step * w.target, plane, columns, at.channels);
  }

  // Pixels that are w.step apart. Not inline: tile() would have its code for each size.
  [[gnu::noinline]] static void store_strided(const float* block, std::int64_t pitch,
                                              const TileAt& at) {
    const Axis &h = at.sub->h, &w = at.sub->w;
    const std::int64_t columns = at.shape->columns.size;
    for (std::int64_t r = 0; r < at.shape->rows.size; ++r, block += columns * pitch) {
      float* row = at.target + r * h.step * w.target;
      for (std::int64_t i = 0; i < at.channels; ++i, row += h.target * w.target)
        for (std::int64_t j = 0; j < columns; ++j) row[j * w.step] = block[j * pitch + i];
    }
  }

  std::int64_t source_elements_;  // of one group
  std::int64_t panel_;            // channels of the target: as many as a tile has in registers
  std::vector<SubCorrelation> sub_correlations_;
  bool packs_late_ = false;
  bool is_padded_ = false;  // the tiles read a copy of the image with zeros around it
  std::vector<std::vector<Tap>> taps_;
  std::int64_t packed_size_ = 0;
  AlignedArray<float> packed_;
  const float* weights_ = nullptr;  // of this run, for those who pack late
  // What they pack, or a transposed panel of filters at the offset filters_: [threads, part_size_].
  AlignedArray<float> part_;
  std::int64_t part_size_ = 0, filters_ = 0;
  AlignedArray<float> elements_;  // of two numbers, or padded copies: [threads, elements_size_]
  // An image of one group, or the filters of as many channels as an element has.
  std::int64_t elements_size_ = 0;
  AlignedArray<float> sums_;  // of several passes: [threads, sums_size_]
  std::int64_t sums_size_ = 0;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA
