// CIFAR-10, plain and gzip, in one or two files: the first byte says where the second begins, in
// records of 3073 bytes.
#include "harness/data/cifar.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile first, second;
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  const std::size_t cut = std::min<std::size_t>(std::size_t{data[0]} * 3073, text.size());
  fuzz::expect_result_or_message([&] {
    std::vector<std::filesystem::path> files = {first.write(text.substr(cut))};
    if (cut > 0) files.push_back(second.write(text.substr(0, cut)));
    const data::Dataset dataset = data::read_cifar(files);
    if (dataset.images.size() != dataset.labels.size() * dataset.image_size()) std::abort();
  });
  return 0;
}
