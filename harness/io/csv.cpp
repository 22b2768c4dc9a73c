#include "harness/io/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "harness/io/file.hpp"
#include "harness/io/number.hpp"
#include "harness/io/printable.hpp"

namespace stepladder {
namespace {

[[noreturn]] void fail_in(const std::string& where, const std::string& what) {
  throw std::runtime_error(printable(fmt::format("{}: {}", where, what)));
}

std::vector<std::string> split(const std::string& line, const std::string& where) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += line[++i];
      } else {
        quoted = false;
        if (i + 1 < line.size() && line[i + 1] != ',')
          fail_in(where, fmt::format("\"{}\" follows a closing quotation mark; expected a comma or "
                                     "the end of the line",
                                     line.substr(i + 1, 1)));
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) fail_in(where, "a quotation mark is not closed");
  return fields;
}

}  // namespace

bool CsvRow::has(std::string_view column) const {
  return std::find(header_->begin(), header_->end(), column) != header_->end();
}

const std::string& CsvRow::text(std::string_view column) const {
  static const std::string nothing;
  const auto found = std::find(header_->begin(), header_->end(), column);
  return found == header_->end() ? nothing
                                 : fields_[static_cast<std::size_t>(found - header_->begin())];
}

std::int64_t CsvRow::integer(std::string_view column, std::int64_t low, std::int64_t high) const {
  const std::string& field = text(column);
  const std::optional<std::int64_t> value = number_in<std::int64_t>(field);
  if (!value || *value < low || *value > high)
    fail(fmt::format("column {} holds \"{}\"; expected a whole number from {} to {}", column, field,
                     low, high));
  return *value;
}

std::int64_t CsvRow::integer(std::string_view column, std::int64_t low, std::int64_t high,
                             std::int64_t otherwise) const {
  return text(column).empty() ? otherwise : integer(column, low, high);
}

void CsvRow::fail(const std::string& what) const { fail_in(where_, what); }

CsvFile::CsvFile(const std::filesystem::path& file, const std::vector<std::string>& required,
                 const std::vector<std::string>& optional, LastLine last_line) {
  const std::vector<std::uint8_t> bytes = read_bytes(file);
  std::istringstream in(std::string(bytes.begin(), bytes.end()));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (in.eof() && last_line == LastLine::may_be_torn) {
      torn_ = fmt::format("{}:{}", file.string(), number);
      break;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number == 1 && line.starts_with("\xEF\xBB\xBF"))
      line.erase(0, 3);  // the byte order mark of spreadsheets
    const std::string where = fmt::format("{}:{}", file.string(), number);
    if (line.empty()) continue;
    if (as_utf8(line) != line) fail_in(where, "not UTF-8 text; save the file as UTF-8");
    std::vector<std::string> fields = split(line, where);
    if (header_.empty()) {
      header_ = std::move(fields);
      for (const std::string& column : required)
        if (std::find(header_.begin(), header_.end(), column) == header_.end())
          fail_in(where, fmt::format("the header lacks the column \"{}\"; expected {}", column,
                                     fmt::join(required, ",")));
      for (const std::string& column : header_) {
        if (std::count(header_.begin(), header_.end(), column) > 1)
          fail_in(where, fmt::format("the column \"{}\" comes twice", column));
        if (std::find(required.begin(), required.end(), column) == required.end() &&
            std::find(optional.begin(), optional.end(), column) == optional.end())
          fail_in(where, fmt::format("unknown column \"{}\"; expected {}", column,
                                     fmt::join(required, ",")));
      }
      continue;
    }
    if (fields.size() != header_.size())
      fail_in(where, fmt::format("{} fields; the header has {}", fields.size(), header_.size()));
    rows_.emplace_back(where, &header_, std::move(fields));
  }
  if (header_.empty())
    fail_in(file.string(), fmt::format("empty; expected the header {}", fmt::join(required, ",")));
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    if (field.find_first_of(",\"\n\r") == std::string::npos) {
      line += field;
      continue;
    }
    line += '"';
    for (const char c : field) {
      if (c == '"') line += '"';
      line += c == '\n' || c == '\r' ? ' ' : c;
    }
    line += '"';
  }
  return as_utf8(line) + '\n';
}

}  // namespace stepladder
