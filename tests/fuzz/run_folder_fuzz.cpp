// The folder of a run as --resume reads it. The first byte chooses the file that the rest becomes:
// summary.csv, samples.csv, another table or environment.json; from 8 on, a table gets its header.
#include "harness/results/bench_writer.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/results/run_folder.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

namespace {

void read_table(const fuzz::MemoryFolder& memory, const Columns& columns, const std::string& text) {
  memory.write("environment.json", "{}");
  memory.write(columns.name() + ".csv", text);
  const RunFolder folder(memory.path(), true);
  const BenchWriter writer(folder);
  columns.as_json(folder.read(columns));
}

void read_json(const fuzz::MemoryFolder& memory, std::string_view text) {
  memory.write("environment.json", text);
  const RunFolder folder(memory.path(), true);
  const nlohmann::json content = folder.read_json("environment.json");
  folder.write_json("environment.json", {{"before", content}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFolder memory("run-folder");
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  fuzz::expect_result_or_message([&] {
    const auto tables = all_columns();
    const std::size_t choice = data[0] % 8;
    if (choice >= tables.size()) {
      read_json(memory, text);
      return;
    }
    read_table(memory, *tables[choice],
               data[0] < 8 ? std::string(text) : fuzz::table_of(tables[choice]->names(), text));
  });
  for (const auto& entry : std::filesystem::directory_iterator(memory.path()))
    std::filesystem::remove(entry.path());
  return 0;
}
