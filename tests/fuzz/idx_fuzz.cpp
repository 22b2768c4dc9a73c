// IDX, plain and gzip. The first byte is the length of the file of labels, which begins the input.
#include "harness/data/idx.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile images, labels;
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  const std::size_t cut = std::min<std::size_t>(data[0], text.size());
  fuzz::expect_result_or_message([&] {
    const data::Dataset dataset =
        data::read_idx(images.write(text.substr(cut)), labels.write(text.substr(0, cut)));
    if (dataset.images.size() != dataset.labels.size() * dataset.image_size()) std::abort();
    data::crop(dataset, (dataset.height + 1) / 2, (dataset.width + 1) / 2);
  });
  return 0;
}
