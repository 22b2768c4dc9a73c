// The rungs of a step, --use, as text.
#include "harness/adapters/primitives.hpp"
#include "harness/rungs/use_spec.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_result_or_message([&] {
    const UseSpec use{std::string(fuzz::text_of(data, size))};
    for (const PrimitiveType* type : primitives()) use.candidates(*type);
  });
  return 0;
}
