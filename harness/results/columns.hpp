// The columns of a result file: name, type, unit, meaning, and how a row gives the value. They are
// stated once for each file, in result_columns.cpp. The CSV header and lines, the JSON files and
// columns.json follow from there.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/io/csv.hpp"

namespace stepladder {

enum class ColumnType { text, integer, number };
const char* name_of(ColumnType type);

struct Column {
  std::string name;
  ColumnType type;
  std::string unit;  // "s", "GFLOP/s"; empty where there is none
  std::string meaning;
};

// Six significant digits; empty for NaN and infinities.
std::string number(double value);

// CSV fields of the types that a column can have.
inline std::string csv_field(std::string text) { return text; }
inline std::string csv_field(double value) { return number(value); }
template <std::integral T>
std::string csv_field(T value) {
  return std::to_string(value);
}
template <class T>
std::string csv_field(const std::optional<T>& value) {
  return value ? csv_field(*value) : std::string{};
}

// The columns of NAME.csv.
class Columns {
 public:
  const std::string& name() const { return name_; }
  const std::vector<Column>& all() const { return columns_; }
  const std::vector<std::string>& names() const { return names_; }
  // Throws std::logic_error when there is no such column.
  std::size_t index_of(const std::string& column) const;

  // The file as JSON: {"schema_version", "columns": names, "rows": [{name: value}]}. Numbers are
  // numbers, empty fields null. Throws std::runtime_error for a field of the wrong type.
  std::string as_json(const CsvFile& file) const;

 protected:
  Columns(std::string name, std::vector<Column> columns);

 private:
  std::string name_;
  std::vector<Column> columns_;
  std::vector<std::string> names_;
};

// One column of a file with rows of type Row. `get`, a member or a function, maps a row to
// std::string, const char*, double, an integer, or an optional of these; the type of the column
// follows from it.
template <class Row>
struct ColumnOf {
  template <class Get>
  ColumnOf(const char* name, const char* unit, const char* meaning, Get get)
      : column{name, type_of<std::decay_t<std::invoke_result_t<Get, const Row&>>>(), unit, meaning},
        field([get](const Row& row) { return csv_field(std::invoke(get, row)); }) {}

  Column column;
  std::function<std::string(const Row&)> field;

 private:
  template <class Value>
  static constexpr ColumnType type_of() {
    if constexpr (requires(Value value) { value.value(); })
      return type_of<typename Value::value_type>();
    else if constexpr (std::is_floating_point_v<Value>)
      return ColumnType::number;
    else if constexpr (std::is_integral_v<Value>)
      return ColumnType::integer;
    else
      return ColumnType::text;
  }
};

template <class Row>
class ColumnsOf : public Columns {
 public:
  ColumnsOf(std::string name, std::initializer_list<ColumnOf<Row>> columns)
      : Columns(std::move(name), columns_of(columns)) {
    for (const ColumnOf<Row>& column : columns) fields_.push_back(column.field);
  }

  // The fields of one line, in the order of names().
  std::vector<std::string> line(const Row& row) const {
    std::vector<std::string> fields;
    for (const auto& field : fields_) fields.push_back(field(row));
    return fields;
  }

 private:
  static std::vector<Column> columns_of(std::initializer_list<ColumnOf<Row>> columns) {
    std::vector<Column> all;
    for (const ColumnOf<Row>& column : columns) all.push_back(column.column);
    return all;
  }

  std::vector<std::function<std::string(const Row&)>> fields_;
};

}  // namespace stepladder
