#include "harness/results/table.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "harness/io/file.hpp"

namespace stepladder {
namespace {

// Removes a last line without newline. Returns the path.
std::filesystem::path without_torn_line(std::filesystem::path file,
                                        const std::vector<std::string>& columns) {
  const std::string text = text_in(file);
  // Spreadsheets write a byte order mark and end lines with a carriage return too.
  const std::string_view mark = "\xEF\xBB\xBF";
  std::string first = text.substr(0, text.find('\n'));
  if (first.starts_with(mark)) first.erase(0, mark.size());
  if (first.ends_with('\r')) first.pop_back();
  const std::string header = csv_line(columns);
  const bool is_torn = text.find('\n') == std::string::npos;
  if (is_torn ? !header.starts_with(first) : first + '\n' != header)
    throw std::runtime_error(fmt::format(
        "{}:1: its columns are not this version's; choose another folder", file.string()));
  const std::size_t last = text.rfind('\n'), whole = last == std::string::npos ? 0 : last + 1;
  if (whole != text.size()) std::filesystem::resize_file(file, whole);
  return file;
}

}  // namespace

Table::Table(std::filesystem::path file, const std::vector<std::string>& columns)
    : path_(without_torn_line(std::move(file), columns)), columns_(columns), file_(path_) {
  if (file_.is_empty()) append({columns_});
}

std::string Table::lines_of(const std::vector<std::vector<std::string>>& rows) const {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != columns_.size())
      throw std::logic_error(fmt::format("{}: a row of {} fields for {} columns", path_.string(),
                                         row.size(), columns_.size()));
    text += csv_line(row);
  }
  return text;
}

void Table::append(const std::vector<std::vector<std::string>>& rows) {
  file_.append(lines_of(rows));
}

void Table::remove_rows(const std::function<bool(const CsvRow&)>& unwanted,
                        const std::vector<std::vector<std::string>>& appended) {
  const CsvFile before(path_, columns_);
  std::string text = csv_line(columns_);
  for (const CsvRow& row : before.rows()) {
    if (unwanted(row)) continue;
    std::vector<std::string> fields;
    for (const std::string& column : columns_) fields.push_back(row.text(column));
    text += csv_line(fields);
  }
  file_.replace(text + lines_of(appended));
}

}  // namespace stepladder
