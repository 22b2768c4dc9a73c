// Globs: --variant, --problem and --direction, one a line, then the name of a primitive.
#include "bench/selection.hpp"
#include "harness/io/glob.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  static const std::string suite_file = file.write(
      "suite,name,batch,channels,height,width,window_h,window_w,stride_h,stride_w,pad_h,pad_w,"
      "direction,source\n"
      "layers,mnist_cnn.pool1,64,8,24,24,2,2,2,2,0,0,forward,here\n"
      "layers,mnist_cnn.pool1,64,8,24,24,2,2,2,2,0,0,backward,here\n");
  std::string_view text = fuzz::text_of(data, size);
  Selection selection;
  selection.variant = fuzz::first_line(text);
  selection.problem = fuzz::first_line(text);
  selection.direction = fuzz::first_line(text);
  selection.primitives = {std::string(text.empty() ? "max_pool" : text)};
  if (selection.primitives.front() == "all_reduce") return 0;  // it would start MPI
  if (selection.primitives.front() == "max_pool") selection.suite_file = suite_file;
  fuzz::expect_result_or_message([&] { selection.work(""); });
  if (!glob_matches(glob_of("a[*"), "a[*")) std::abort();
  return 0;
}
