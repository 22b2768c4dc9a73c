#include "harness/problem/suites.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include "harness/io/file.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/printable.hpp"

namespace stepladder {

std::vector<std::unique_ptr<Case>> load_suite(const PrimitiveType& type,
                                              const std::filesystem::path& file,
                                              const std::string& suite, int ranks) {
  std::vector<std::string> columns = {"suite", "name"};
  for (SuiteColumn& column : type.suite_columns()) columns.push_back(std::move(column.name));
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

std::string shape_form(const PrimitiveType& type) {
  std::vector<std::string> needed;
  for (const SuiteColumn& column : type.suite_columns())
    if (column.defaults.empty()) needed.push_back(column.name);
  return fmt::format("{}, for example {}", fmt::join(needed, "x"),
                     fmt::join(std::vector<int>(needed.size(), 64), "x"));
}

std::vector<std::unique_ptr<Case>> shape_problems(const PrimitiveType& type,
                                                  const std::string& text, int ranks) {
  const std::string where = fmt::format("--shape '{}'", text);
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error(printable(fmt::format("{}: {}", where, what)));
  };
  const std::vector<SuiteColumn> columns = type.suite_columns();
  std::vector<std::string> header = {"suite", "name"};
  for (const SuiteColumn& column : columns) header.push_back(column.name);
  for (const std::string& column : type.optional_columns()) header.push_back(column);
  std::map<std::string, std::string> values = {{"suite", "shape"}, {"name", text}};

  std::istringstream words(text);
  std::string word;
  words >> word;
  std::istringstream sizes(word + 'x');
  std::size_t given = 0;
  for (std::string size; std::getline(sizes, size, 'x'); ++given) {
    if (given == columns.size())
      fail(fmt::format("{} has at most {} sizes; expected {}", type.name(), columns.size(),
                       shape_form(type)));
    values[columns[given].name] = size;
  }
  while (words >> word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos || values.contains(name) ||
        std::find(header.begin(), header.end(), name) == header.end())
      fail(fmt::format("\"{}\" gives no further column; expected COLUMN=VALUE with one of {}", word,
                       fmt::join(header.begin() + 2, header.end(), ", ")));
    values[name] = word.substr(equals + 1);
  }

  std::vector<std::map<std::string, std::string>> rows = {values};
  for (const SuiteColumn& column : columns) {
    if (values.contains(column.name)) continue;
    if (column.defaults.empty())
      fail(fmt::format("no {} is given; expected {}", column.name, shape_form(type)));
    std::vector<std::map<std::string, std::string>> more;
    for (const auto& row : rows)
      for (const std::string& value : column.defaults) {
        more.push_back(row);
        more.back()[column.name] = value;
      }
    rows = std::move(more);
  }
  std::vector<std::unique_ptr<Case>> all;
  for (auto& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& column : header) fields.push_back(row[column]);
    std::vector<std::unique_ptr<Case>> cases =
        type.cases(CsvRow(where, &header, std::move(fields)), ranks);
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

std::filesystem::path suite_file(const PrimitiveType& type) {
  return source_directory() / "bench" / "suites" / (std::string(type.name()) + ".csv");
}

}  // namespace stepladder
