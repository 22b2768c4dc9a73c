#include "harness/results/columns.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "harness/io/json_text.hpp"
#include "harness/io/number.hpp"

namespace stepladder {
namespace {

using Json = nlohmann::ordered_json;

Json value_of(const CsvRow& row, const Column& column) {
  const std::string& field = row.text(column.name);
  if (field.empty()) return nullptr;
  if (column.type == ColumnType::text) return field;
  const auto parse = [&](auto value) -> Json {
    const auto number = number_in<decltype(value)>(field);
    if (!number)
      row.fail(fmt::format("column {} holds \"{}\"; expected {} {}", column.name, field,
                           column.type == ColumnType::integer ? "an" : "a", name_of(column.type)));
    return *number;
  };
  return column.type == ColumnType::integer ? parse(std::int64_t{}) : parse(double{});
}

}  // namespace

const char* name_of(ColumnType type) {
  constexpr const char* names[] = {"text", "integer", "number"};
  return names[static_cast<int>(type)];
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : std::string{};
}

Columns::Columns(std::string name, std::vector<Column> columns)
    : name_(std::move(name)), columns_(std::move(columns)) {
  for (const Column& column : columns_) names_.push_back(column.name);
}

std::size_t Columns::index_of(const std::string& column) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == column) return i;
  throw std::logic_error(fmt::format("{}.csv has no column {}", name_, column));
}

std::string Columns::as_json(const CsvFile& file) const {
  std::string text = fmt::format("{{\n \"schema_version\": 1,\n \"columns\": {},\n \"rows\": [",
                                 json_text(Json(names_)));
  for (const CsvRow& row : file.rows()) {
    Json values = Json::object();
    for (const Column& column : columns_) values[column.name] = value_of(row, column);
    text += &row == &file.rows().front() ? "\n  " : ",\n  ";
    text += json_text(values);
  }
  return text + "\n ]\n}\n";
}

}  // namespace stepladder
