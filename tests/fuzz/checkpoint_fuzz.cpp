// A checkpoint file. An odd first byte stands for a right checksum at the end: nothing else would
// get past it.
#include <zlib.h>

#include "harness/training/checkpoint.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFolder memory("checkpoint");
  static const CheckpointFolder folder(memory.path());
  if (size == 0) return 0;
  std::string file(fuzz::text_of(data + 1, size - 1));
  if (data[0] % 2 == 1) {
    const auto sum = static_cast<std::uint32_t>(crc32_z(0, data + 1, size - 1));
    file.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  }
  memory.write("step-000010-0a1b2c3d.checkpoint", file);
  fuzz::expect_result_or_message([&] {
    std::vector<std::string> refused;
    folder.load({"network: mlp", "batch: 8"}, refused);
    for (const std::string& line : refused) fuzz::check_message(line);
  });
  return 0;
}
