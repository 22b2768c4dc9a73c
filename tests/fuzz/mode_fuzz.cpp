// A mode of training, --mode, as text. The modes here have the options of real ones, and train
// nothing.
#include "harness/training/mode_spec.hpp"
#include "tests/fuzz/fuzz.hpp"

// The list of modes holds factories, which nothing here calls.
namespace stepladder {
class Mode {};
}  // namespace stepladder

using namespace stepladder;

namespace {

const ModeRegistration registrations[] = {
    {{"single", "", ModeInfo::Replicas::one, true, false, {}}, nullptr, nullptr},
    {{"ssp", "", ModeInfo::Replicas::ranks, false, true, {{"bound", "2", ""}}}, nullptr, nullptr},
    {{"downpour",
      "",
      ModeInfo::Replicas::ranks,
      false,
      true,
      {{"fetch", "1", ""}, {"rate", "0.5", ""}, {"queue", "yes", ""}}},
     nullptr,
     nullptr},
    {{"hybrid",
      "",
      ModeInfo::Replicas::ranks,
      true,
      true,
      {{"between", "single", ""}, {"inside", "ssp", ""}, {"groups", "2", ""}}},
     nullptr,
     nullptr}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_result_or_message([&] {
    const ModeSpec spec{std::string(fuzz::text_of(data, size))};
    for (const ModeOption& option : mode_named(spec.name()).info.options) {
      fuzz::expect_result_or_message([&] { spec.integer(option.name, 1); });
      fuzz::expect_result_or_message([&] { spec.number(option.name); });
      fuzz::expect_result_or_message([&] { spec.flag(option.name); });
    }
  });
  return 0;
}
