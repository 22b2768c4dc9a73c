// Two runs as `compare` reads them: the input up to the first NUL has the rows of samples.csv of
// the earlier one, the rest those of the later one. A row begins with the columns that are
// compared.
#include "bench/commands.hpp"
#include "harness/results/result_columns.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFolder before("before"), after("after");
  static const bool silent = std::freopen("/dev/null", "w", stdout) != nullptr;
  if (!silent) std::abort();
  static const std::vector<std::string> columns = [] {
    std::vector<std::string> all = {"primitive",  "direction", "problem", "variant",
                                    "threads",    "ranks",     "seconds", "marked",
                                    "repetition", "visit",     "cores"};
    for (const std::string& name : samples_columns().names())
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    return all;
  }();
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t cut = std::min(text.find('\0'), text.size());
  before.write("samples.csv", fuzz::table_of(columns, text.substr(0, cut)));
  after.write("samples.csv", fuzz::table_of(columns, text.substr(std::min(cut + 1, text.size()))));
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
  // At most one error of one line, after a warning for each torn file.
  std::string_view error(message, length);
  for (int run = 0; run < 2; ++run) {
    std::string_view rest = error;
    const std::string line = fuzz::first_line(rest);
    if (!line.ends_with("the last line is torn (no newline at its end); skipped")) break;
    fuzz::check_message(line);
    error = rest;
  }
  if (!error.empty()) fuzz::check_message(error.substr(0, error.size() - 1));  // no newline
  std::free(message);
  return 0;
}
