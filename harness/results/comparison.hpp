// Whether the rows of two runs differ, although the machine was not the same at both times.
//
// A row is judged beside the other rows of its problem, which took turns with it: the drift of a
// round is the median deviation of the others, and the change of a row is its own change minus
// their median change. The variance has three parts: repetitions within visits, visits of one run,
// and runs (drift between runs, estimated over all rows of the comparison). docs/measuring.md has
// the method, its assumptions and sources.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/measure/drift.hpp"

namespace stepladder {

struct RowKey {
  std::string primitive, direction, problem;
  std::int64_t threads = 1, ranks = 1;
  std::string variant;
  // NOLINTNEXTLINE(modernize-use-nullptr): a fault of clang-tidy 14
  auto operator<=>(const RowKey&) const = default;
  bool same_group(const RowKey& other) const {
    return primitive == other.primitive && direction == other.direction &&
           problem == other.problem && threads == other.threads && ranks == other.ranks;
  }
};

using Repetitions = std::map<RowKey, std::vector<Repetition>>;

// The undisturbed repetitions of samples.csv of a run, or samples.csv.gz; none of rows of which
// most were disturbed. Throws std::runtime_error, which names file and line.
Repetitions read_repetitions(const std::filesystem::path& run);

// The rows of summary.csv or summary.csv.gz with status `failed`, and their reasons. A run without
// that file has none: samples.csv alone is enough to compare times.
std::map<RowKey, std::string> read_failed(const std::filesystem::path& run);

enum class Change { same, slower, faster, cannot_tell };
const char* name_of(Change change);  // "cannot tell" with a space

struct Judgement {
  // Time after / time before, beside the other rows, with an interval that holds for all rows (or
  // all rungs) together at the level of significance.
  double ratio = 1, low = 1, high = 1;
  double p = 1;  // that there is no change, corrected for the number of rows or rungs (Holm)
  Change change = Change::cannot_tell;
  std::string reason{};  // why it cannot be told
  bool judged = false;   // whether there is a ratio
};

struct RowComparison : Judgement {
  RowKey key{};
  double before_seconds = 0, after_seconds = 0;  // medians; 0 if most repetitions were disturbed
};

// A rung with one number of threads over its problems and directions, of which it has three or
// more: the mean change, weighted by the precision of each.
struct RungComparison : Judgement {
  RowKey key{};  // without problem and direction
  int problems = 0;
};

struct Comparison {
  std::vector<RowComparison> rows;
  std::vector<RungComparison> rungs;
};

struct ComparisonOptions {
  double threshold = 0.05;     // smallest change that matters
  double significance = 0.05;  // probability of any false alarm in the comparison
};

Comparison compare_runs(const Repetitions& before, const Repetitions& after,
                        const ComparisonOptions& options);

// Of two programs that ran in turns: visit i of `before` and of `after` came one after the other,
// in processes of their own. A row has the trimmed mean of the changes of its pairs, a rung of two
// problems or more that of the means over its problems. The significance is that of any false
// alarm, in rows and rungs together.
Comparison compare_pairs(const Repetitions& before, const Repetitions& after,
                         const ComparisonOptions& options);

}  // namespace stepladder
