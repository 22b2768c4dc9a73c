// The suites of every primitive, as --suite-file reads them. The first byte chooses the primitive.
#include "harness/adapters/primitives.hpp"
#include "harness/problem/suites.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  if (size == 0) return 0;
  const auto types = primitives();
  const PrimitiveType& type = *types[data[0] % types.size()];
  const int ranks = 1 + data[0] / 16;
  fuzz::expect_result_or_message(
      [&] { load_suite(type, file.write(fuzz::text_of(data + 1, size - 1)), "", ranks); });
  return 0;
}
