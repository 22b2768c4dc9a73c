#include "harness/problem/suites.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "harness/io/file.hpp"
#include "harness/io/nearest.hpp"

namespace stepladder {

std::vector<std::unique_ptr<Case>> load_suite(const PrimitiveType& type,
                                              const std::filesystem::path& file,
                                              const std::string& suite, int ranks) {
  std::vector<std::string> columns = {"suite", "name"};
  for (std::string& column : type.suite_columns()) columns.push_back(std::move(column));
  columns.emplace_back("source");
  const CsvFile csv(file, columns, type.optional_columns());

  std::vector<std::unique_ptr<Case>> all;
  std::vector<std::string> suites;
  std::map<std::string, std::string> lines;  // of each problem; its names identify its results
  for (const CsvRow& row : csv.rows()) {
    if (row.text("suite").empty() || row.text("name").empty())
      row.fail("a problem needs a suite and a name");
    if (std::find(suites.begin(), suites.end(), row.text("suite")) == suites.end())
      suites.push_back(row.text("suite"));
    // Lines of other suites are checked too.
    std::vector<std::unique_ptr<Case>> cases = type.cases(row, ranks);
    for (const auto& problem : cases) {
      const ProblemInfo& info = problem->info();
      const auto [first, is_new] =
          lines.emplace(info.suite + "|" + info.name + "|" + info.direction, row.where());
      if (!is_new)
        row.fail(fmt::format("suite {} has a problem {}, {}, already at {}; expected another name",
                             info.suite, info.name, info.direction, first->second));
    }
    if (suite.empty() || row.text("suite") == suite)
      std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  if (csv.rows().empty())
    throw std::runtime_error(
        fmt::format("{}: only a header; expected problems below it", file.string()));
  if (all.empty()) throw UnknownName("suite", suite, suites);
  return all;
}

std::filesystem::path suite_file(const PrimitiveType& type) {
  return source_directory() / "bench" / "suites" / (std::string(type.name()) + ".csv");
}

}  // namespace stepladder
