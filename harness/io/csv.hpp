// Comma-separated values: RFC 4180 quoting, one header row, fields by column name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// One line of a file. Errors name the file and the line.
class CsvRow {
 public:
  CsvRow(std::string where, const std::vector<std::string>* header, std::vector<std::string> fields)
      : where_(std::move(where)), header_(header), fields_(std::move(fields)) {}

  bool has(std::string_view column) const;
  // The text of a column, empty when the file has no such column.
  const std::string& text(std::string_view column) const;
  // A whole number in [low, high]; `otherwise` if the column is absent or empty. Throws
  // std::runtime_error with file, line, column, the field and the expected range.
  std::int64_t integer(std::string_view column, std::int64_t low, std::int64_t high) const;
  std::int64_t integer(std::string_view column, std::int64_t low, std::int64_t high,
                       std::int64_t otherwise) const;
  const std::string& where() const { return where_; }  // "file:line"
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string where_;
  const std::vector<std::string>* header_;
  std::vector<std::string> fields_;
};

// A crash leaves a last line without newline in a file to which a program appended; a person's
// editor does so in a sound one.
enum class LastLine { whole, may_be_torn };

// A file of such rows, or one that gzip compressed.
class CsvFile {
 public:
  // Throws std::runtime_error with file and line if the file cannot be read, lacks a column of
  // `required`, has a column twice or one that is neither in `required` nor in `optional`, or if a
  // line has too many or too few fields, is wrongly quoted or is not UTF-8. A torn line is left
  // out.
  CsvFile(const std::filesystem::path& file, const std::vector<std::string>& required,
          const std::vector<std::string>& optional = {}, LastLine last_line = LastLine::whole);
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  const std::vector<CsvRow>& rows() const { return rows_; }
  const std::string& torn() const { return torn_; }  // "file:line" of a torn line, or empty

 private:
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
  std::string torn_;
};

// Quoted where needed, with a final newline. A line break inside a field becomes a space.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace stepladder
