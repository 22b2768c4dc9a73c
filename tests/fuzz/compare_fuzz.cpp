// Two runs as `compare` reads them: the input up to the first NUL has the rows of samples.csv of
// the earlier one, the rest those of the later one.
#include "bench/commands.hpp"
#include "harness/results/result_columns.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFolder before("before"), after("after");
  static const bool silent = std::freopen("/dev/null", "w", stdout) != nullptr;
  if (!silent) std::abort();
  const std::string header = csv_line(samples_columns().names());
  const std::string text(fuzz::text_of(data, size));
  const std::size_t cut = std::min(text.find('\0'), text.size());
  before.write("samples.csv", header + text.substr(0, cut));
  after.write("samples.csv", header + text.substr(std::min(cut + 1, text.size())));
  CLI::App program;
  const Command command = compare_command(program);
  program.parse("compare " + before.path().string() + " " + after.path().string());

  std::FILE* const usual = stderr;
  char* message = nullptr;
  std::size_t length = 0;
  stderr = open_memstream(&message, &length);
  command.run();
  std::fclose(stderr);
  stderr = usual;
  if (length > 0) fuzz::check_message({message, length - 1});  // without the newline
  std::free(message);
  return 0;
}
