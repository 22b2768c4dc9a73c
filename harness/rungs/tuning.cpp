#include "harness/rungs/tuning.hpp"

#include <fmt/format.h>

#include <optional>

#include "harness/io/csv.hpp"
#include "harness/io/file.hpp"
#include "harness/io/number.hpp"
#include "harness/results/columns.hpp"

namespace stepladder {
namespace {

const std::vector<std::string> columns = {"machine", "problem", "threads", "variant", "median_s"};

}  // namespace

Tuning::Tuning(const std::filesystem::path& file, const std::string& cpu_model) {
  const CsvFile csv(file, columns);
  for (const CsvRow& row : csv.rows()) {
    if (row.text("machine") != cpu_model)
      row.fail(
          fmt::format("measured on \"{}\", and this is \"{}\"; run `stepladder tune` here, "
                      "with another file for --out",
                      row.text("machine"), cpu_model));
    // Only the variant is used; the time is for readers of the file.
    const std::optional<double> seconds = number_in<double>(row.text("median_s"));
    if (!seconds)
      row.fail(fmt::format("column median_s holds \"{}\"; expected a time", row.text("median_s")));
    set(row.text("problem"), static_cast<int>(row.integer("threads", 1, 1024)),
        {row.text("variant"), *seconds});
  }
}

const Tuning::Choice* Tuning::find(const std::string& problem, int threads) const {
  const auto found = choices_.find({problem, threads});
  return found == choices_.end() ? nullptr : &found->second;
}

void Tuning::set(const std::string& problem, int threads, Choice choice) {
  choices_[{problem, threads}] = std::move(choice);
}

void Tuning::save(const std::filesystem::path& file, const std::string& cpu_model) const {
  std::string text = csv_line(columns);
  for (const auto& [key, choice] : choices_)
    text += csv_line({cpu_model, key.first, std::to_string(key.second), choice.variant,
                      number(choice.median_seconds)});
  replace_file(file, text);
}

}  // namespace stepladder
