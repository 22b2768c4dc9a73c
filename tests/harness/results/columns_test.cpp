// The columns of a result file are stated once: header, lines, JSON and columns.json agree.
#include "harness/results/columns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/results/result_columns.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

struct Pet {
  std::string name;
  std::optional<int> legs;
  double weight;
};
const ColumnsOf<Pet>& pets() {
  static const ColumnsOf<Pet> columns(
      "pets", {{"name", "", "", [](const Pet& p) { return p.name; }},
               {"legs", "", "", [](const Pet& p) { return p.legs; }},
               {"weight", "kg", "when last seen", [](const Pet& p) { return p.weight; }}});
  return columns;
}

TEST(Columns, TypesFollowFromTheValues) {
  std::string types;
  for (const Column& column : pets().all()) types += std::string(name_of(column.type)) + " ";
  EXPECT_EQ(types, "text integer number ");
  EXPECT_EQ(pets().names(), (std::vector<std::string>{"name", "legs", "weight"}));
  EXPECT_EQ(pets().index_of("weight"), 2U);
  EXPECT_THROW(pets().index_of("wings"), std::logic_error);
}

TEST(Columns, ALineHasAFieldForEachColumn) {
  EXPECT_EQ(pets().line({"Rex", 4, 12.5}), (std::vector<std::string>{"Rex", "4", "12.5"}));
  EXPECT_EQ(pets().line({"Ka", {}, 0.0 / 0.0}), (std::vector<std::string>{"Ka", "", ""}));
}

TEST(Columns, JsonHasTheSameColumnsNumbersAndNulls) {
  const TemporaryFolder folder;
  folder.write("pets.csv", csv_line(pets().names()) + csv_line(pets().line({"Rex, Jr.", 4, 12.5})) +
                               csv_line(pets().line({"", {}, 1e9})));
  const auto json =
      nlohmann::json::parse(pets().as_json(CsvFile(folder / "pets.csv", pets().names())));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["columns"], nlohmann::json(pets().names()));
  EXPECT_EQ(json["rows"].dump(),
            "[{\"legs\":4,\"name\":\"Rex, Jr.\",\"weight\":12.5},"
            "{\"legs\":null,\"name\":null,\"weight\":1000000000.0}]");
}

TEST(Columns, JsonOfNoRows) {
  const TemporaryFolder folder;
  const CsvFile none(folder.write("none.csv", "name,legs,weight\n"), pets().names());
  EXPECT_TRUE(nlohmann::json::parse(pets().as_json(none))["rows"].empty());
}

TEST(Columns, AFieldOfTheWrongTypeIsAnErrorThatNamesTheLine) {
  const TemporaryFolder folder;
  folder.write("pets.csv", "name,legs,weight\nRex,four,1\n");
  EXPECT_TRUE(says(error_of([&] { pets().as_json(CsvFile(folder / "pets.csv", pets().names())); }),
                   {"pets.csv:2", "column legs holds \"four\"", "expected an integer"}));
}

TEST(Columns, NumbersHaveSixDigitsAndNoNames) {
  EXPECT_EQ(number(0.123456789), "0.123457");
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(1.0 / 0.0), "");
  EXPECT_EQ(number(0.0 / 0.0), "");
}

TEST(ResultColumns, ColumnsJsonHasEveryColumnOfEveryTable) {
  const auto tables = nlohmann::json::parse(columns_as_json())["tables"];
  ASSERT_EQ(tables.size(), all_columns().size());
  for (const Columns* columns : all_columns()) {
    const nlohmann::json& table = tables[columns->name()];
    ASSERT_EQ(table.size(), columns->all().size()) << columns->name();
    for (std::size_t i = 0; i < table.size(); ++i) {
      EXPECT_EQ(table[i]["name"], columns->names()[i]);
      EXPECT_EQ(table[i]["type"], name_of(columns->all()[i].type));
      EXPECT_NE(table[i]["meaning"], "") << columns->names()[i];
    }
  }
}

TEST(ResultColumns, NamesAreUnique) {
  for (const Columns* columns : all_columns()) {
    std::vector<std::string> names = columns->names();
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << columns->name();
  }
}

// Other programs read these; columns may be added between them.
TEST(ResultColumns, TheDocumentedColumnsOfTheSummaryStayInTheirOrder) {
  const std::string documented =
      "primitive direction variant technique builds_on suite problem shape precision layout "
      "prepacked cache threads ranks device status reason verified error_ratio repetitions "
      "median_s ci_low_s ci_high_s min_s prepare_s flops bytes gflops_per_s gbytes_per_s "
      "busbw_gbytes_per_s roof percent_of_roof speedup_vs_serial speedup_vs_vendor cycles "
      "instructions cpi energy_j repeat_command ";
  std::string found;
  for (const std::string& name : summary_columns().names())
    if ((" " + documented).find(" " + name + " ") != std::string::npos) found += name + " ";
  EXPECT_EQ(found, documented);
}

std::string field(const BenchRow& row, const std::string& column) {
  return summary_columns().line(row).at(summary_columns().index_of(column));
}

TEST(ResultColumns, ARowWithoutAProblemHasNoFieldOfOne) {
  const Variant variant = unregistered<sgd_update::SgdUpdate>("missing", nullptr);
  const BenchRow row{.variant = &variant, .status = "unavailable", .reason = "no library"};
  for (const char* column : {"problem", "direction", "shape", "layout", "suite", "cache", "threads",
                             "ranks", "repeat_command", "flops", "bytes", "median_s"})
    EXPECT_EQ(field(row, column), "") << column;
  EXPECT_EQ(field(row, "primitive"), "sgd_update");
  EXPECT_EQ(field(row, "variant"), "missing");
  EXPECT_EQ(field(row, "reason"), "no library");
  EXPECT_EQ(field(row, "verified"), "no");
}

TEST(ResultColumns, MeasuredValuesAreMediansOfTheSamplesThatHaveThem) {
  const Variant variant = unregistered<sgd_update::SgdUpdate>("some", nullptr);
  ProblemInfo problem;
  problem.flops = 4e9;
  BenchRow row{.variant = &variant, .problem = &problem};
  for (const double joules : {1.0, 5.0, 2.0}) {
    Sample sample;
    sample.energy_joules = joules;
    sample.counters = CounterValues{10 * joules, 5 * joules, 0};
    row.measured.samples.push_back(sample);
  }
  row.measured.samples.emplace_back();
  row.summary = summarize({2, 2, 2});
  EXPECT_EQ(field(row, "energy_j"), "2");
  EXPECT_EQ(field(row, "cycles"), "20");
  EXPECT_EQ(field(row, "cpi"), "2");
  EXPECT_EQ(field(row, "gflops_per_s"), "2");
  row.summary = {.count = 3, .median = 2, .ci_low = 1.5, .ci_high = 2.5, .min = 1};
  EXPECT_EQ(field(row, "gflops_per_s"), "2") << "the rate of the median";
  row.set("failed", "wrong");
  EXPECT_EQ(field(row, "energy_j") + field(row, "cycles") + field(row, "gflops_per_s"), "");
}

TEST(ResultColumns, ValuesOfARowAreInTheColumnsOfTheirNames) {
  const Variant variant = unregistered<sgd_update::SgdUpdate>("some", nullptr);
  ProblemInfo problem;
  problem.flops = 3e9;
  problem.bytes_read = 4e9, problem.bytes_written = 1e9;
  const BenchRow row{.variant = &variant,
                     .problem = &problem,
                     .verified = true,
                     .error_ratio = 0.25,
                     .prepare_seconds = 0.5,
                     .predicted_seconds = 0.75,
                     .summary = {.count = 7, .median = 2, .ci_low = 1.5, .ci_high = 2.5, .min = 1},
                     .roof = {.name = "peak", .seconds = 0.5},
                     .speedup_vs_serial = 3,
                     .speedup_vs_compiler = 1.5,
                     .speedup_vs_vendor = 0.8,
                     .speedup_vs_vendor_equal = 0.9};
  const std::pair<const char*, const char*> expected[] = {{"verified", "yes"},
                                                          {"error_ratio", "0.25"},
                                                          {"repetitions", "7"},
                                                          {"median_s", "2"},
                                                          {"ci_low_s", "1.5"},
                                                          {"ci_high_s", "2.5"},
                                                          {"min_s", "1"},
                                                          {"prepare_s", "0.5"},
                                                          {"predicted_s", "0.75"},
                                                          {"flops", "3e+09"},
                                                          {"bytes", "5e+09"},
                                                          {"gflops_per_s", "1.5"},
                                                          {"gbytes_per_s", "2.5"},
                                                          {"percent_of_roof", "25"},
                                                          {"roof", "peak"},
                                                          {"speedup_vs_serial", "3"},
                                                          {"speedup_vs_compiler", "1.5"},
                                                          {"speedup_vs_vendor", "0.8"},
                                                          {"speedup_vs_vendor_equal", "0.9"}};
  for (const auto& [column, value] : expected) EXPECT_EQ(field(row, column), value) << column;
}

}  // namespace
}  // namespace stepladder
