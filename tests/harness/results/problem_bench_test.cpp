// The rows that bench writes for variants that pass, fail, throw, cannot run or do not fit the
// memory, in a new run and in a resumed one.
#include "harness/results/problem_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "harness/io/csv.hpp"
#include "harness/results/result_columns.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using sgd_update::Operands;
using sgd_update::Problem;
using sgd_update::SgdUpdate;

void update(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i)
    o.weights[i] -= o.learning_rate * (o.gradient[i] + p.weight_decay * o.weights[i]);
}
void update_but_the_last(const Problem& p, const Operands& o) {
  Problem shorter = p;
  --shorter.count;
  update(shorter, o);
}
void throws(const Problem&, const Operands&) { throw std::runtime_error("no rule"); }

void throws_when_timed(const Problem&, const Operands&) {
  throw std::runtime_error("fails in the fifth run");
}

class CountsRuns : public sgd_update::Plan {
 public:
  CountsRuns(const Problem& problem, const Resources&) : problem_(problem) {}

 protected:
  Problem problem_;
  int runs_ = 0;
};

// Passes verification; from the fifth run on it does something else.
template <void (*later)(const Problem&, const Operands&)>
class RightAtFirst final : public CountsRuns {
 public:
  using CountsRuns::CountsRuns;
  void run(const Operands& o) override { (++runs_ > 4 ? later : update)(problem_, o); }
};

// Computes in the first two runs, and then applies the same changes again.
class AppliesTheFirstChange final : public CountsRuns {
 public:
  using CountsRuns::CountsRuns;
  void run(const Operands& o) override {
    if (++runs_ <= 2) {
      changes_.assign(o.weights, o.weights + problem_.count);
      update(problem_, o);
      for (std::size_t i = 0; i < changes_.size(); ++i) changes_[i] = o.weights[i] - changes_[i];
    } else {
      for (std::size_t i = 0; i < changes_.size(); ++i) o.weights[i] += changes_[i];
    }
  }

 private:
  std::vector<float> changes_;
};

// The first run of a plan takes four times as long as the others.
class SlowAtFirst final : public CountsRuns {
 public:
  using CountsRuns::CountsRuns;
  void run(const Operands& o) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(runs_++ == 0 ? 440 : 110));
    update(problem_, o);
  }
};

// Takes 200 microseconds; if it alternates, 300 with every second plan.
template <bool alternates>
class Waits final : public sgd_update::Plan {
 public:
  Waits(const Problem& problem, const Resources&)
      : problem_(problem), wait_(alternates && plans_++ % 2 == 1 ? 300 : 200) {}
  void run(const Operands& o) override {
    const auto end = std::chrono::steady_clock::now() + wait_;
    while (std::chrono::steady_clock::now() < end) {
    }
    update(problem_, o);
  }

 private:
  static inline int plans_ = 0;
  Problem problem_;
  std::chrono::microseconds wait_;
};

void takes_long(const Problem& p, const Operands& o) {
  std::this_thread::sleep_for(std::chrono::milliseconds(310));
  update(p, o);
}

class Limited final : public sgd_update::Plan {
 public:
  Limited(const Problem&, const Resources&) { throw Unsupported("takes whole vectors"); }
  void run(const Operands&) override {}
};

// Only its first plan can be made.
class PlannedOnce final : public sgd_update::Plan {
 public:
  PlannedOnce(const Problem& problem, const Resources&) : problem_(problem) {
    if (++plans > 1) throw Unsupported("no room any more");
  }
  void run(const Operands& o) override { update(problem_, o); }
  static inline int plans = 0;

 private:
  Problem problem_;
};

class LacksLibrary final : public sgd_update::Plan {
 public:
  LacksLibrary(const Problem&, const Resources&) { throw NotHere("libfast.so not found"); }
  void run(const Operands&) override {}
};

class BenchTest : public testing::Test {
 protected:
  Variant variant(const char* name, Factory<SgdUpdate> factory) {
    return unregistered<SgdUpdate>(name, factory);
  }

  static inline const BenchOptions quick{.measure = {.repetitions = 3, .budget_seconds = 0.003}};

  // A run of these variants on one problem of sgd.
  BenchCounts bench(const std::vector<Variant>& variants, bool resume = false,
                    std::int64_t count = 100) {
    return bench_all({{"weights", count}}, variants, resume);
  }
  // A run of these variants on problems with these names and counts.
  BenchCounts bench_all(const std::vector<std::pair<std::string, std::int64_t>>& problems,
                        const std::vector<Variant>& variants, bool resume = false,
                        const BenchOptions& options = quick) {
    stepladder::Run run(
        {.directory = folder / "run", .resume = resume, .command = "test", .threads = {}});
    ProblemBench bench(run, options);
    std::vector<std::unique_ptr<Case>> cases;  // they outlive the visits
    for (const auto& [name, count] : problems) {
      cases.push_back(make_case<SgdUpdate>({.count = count, .weight_decay = 0.5F}, "s", name));
      bench.measure(*cases.back(), variants);
    }
    bench.measure_again([](const Case&, double) {});
    run.save();
    return bench.counts();
  }
  std::vector<std::map<std::string, std::string>> rows(const std::string& name,
                                                       const std::vector<std::string>& columns) {
    const CsvFile file(folder / ("run/" + name), columns);
    std::vector<std::map<std::string, std::string>> all;
    for (const CsvRow& row : file.rows()) {
      all.emplace_back();
      for (const std::string& column : columns) all.back()[column] = row.text(column);
    }
    return all;
  }
  std::map<std::string, std::map<std::string, std::string>> summary() {
    std::map<std::string, std::map<std::string, std::string>> by_variant;
    for (auto& row : rows("summary.csv", summary_columns().names())) {
      EXPECT_FALSE(by_variant.contains(row["variant"])) << row["variant"] << " has two rows";
      by_variant[row["variant"]] = row;
    }
    return by_variant;
  }
  // "problem status" of each row of a variant, in the order of the file.
  std::vector<std::string> rows_of(const std::string& variant) {
    std::vector<std::string> found;
    for (auto& row : rows("summary.csv", summary_columns().names()))
      if (row["variant"] == variant) found.push_back(row["problem"] + " " + row["status"]);
    return found;
  }
  int samples_of(const std::string& name) {
    int count = 0;
    for (auto& row : rows("samples.csv", samples_columns().names()))
      count += row["variant"] == name;
    return count;
  }

  TemporaryFolder folder;
};

TEST_F(BenchTest, WhatFailsHasAReasonAndNoTimeAndDoesNotStopTheOthers) {
  Variant missing = variant("missing", nullptr);
  missing.why_unavailable = "built without its library";
  const BenchCounts counts =
      bench({variant("broken_tail", plan_of<update_but_the_last>),
             variant("broken_throws", plan_of<throws>),
             variant("broken_later", make_plan<SgdUpdate, RightAtFirst<throws_when_timed>>),
             variant("limited", make_plan<SgdUpdate, Limited>), missing,
             variant("correct", plan_of<update>)});
  EXPECT_EQ(counts.ok, 1);
  EXPECT_EQ(counts.failed, 3);
  EXPECT_EQ(counts.unavailable, 2);
  auto row = summary();
  EXPECT_TRUE(says(row["broken_tail"]["reason"], {"accuracy tier: weights[99] is "}));
  EXPECT_TRUE(says(row["broken_throws"]["reason"], {"accuracy tier: threw: no rule"}));
  EXPECT_TRUE(says(row["broken_later"]["reason"], {"threw while timed: fails in the fifth run"}));
  for (const char* name : {"broken_tail", "broken_throws", "broken_later"}) {
    EXPECT_EQ(row[name]["status"], "failed") << name;
    EXPECT_EQ(row[name]["median_s"] + row[name]["gflops_per_s"] + row[name]["percent_of_roof"], "")
        << name;
    EXPECT_EQ(samples_of(name), 0) << name;
  }
  EXPECT_EQ(row["broken_tail"]["verified"], "no");
  EXPECT_EQ(row["limited"]["status"] + ": " + row["limited"]["reason"],
            "unavailable: takes whole vectors");
  EXPECT_EQ(row["missing"]["status"] + ": " + row["missing"]["reason"],
            "unavailable: built without its library");
  EXPECT_EQ(row["correct"]["status"], "ok");
  EXPECT_EQ(row["correct"]["verified"], "yes");
  EXPECT_GT(std::stod(row["correct"]["median_s"]), 0);
  EXPECT_GE(samples_of("correct"), 3);
}

TEST_F(BenchTest, WhatGoesWrongWhileItIsTimedFailsAfterwards) {
  const BenchCounts counts =
      bench({variant("wrong_later", make_plan<SgdUpdate, RightAtFirst<update_but_the_last>>),
             variant("repeats_itself", make_plan<SgdUpdate, AppliesTheFirstChange>),
             variant("correct", plan_of<update>)});
  EXPECT_EQ(counts.failed, 2);
  EXPECT_EQ(counts.ok, 1);
  auto row = summary();
  EXPECT_TRUE(says(row["wrong_later"]["reason"], {"after the timing: ", "weights[99] is "}));
  EXPECT_TRUE(says(row["repeats_itself"]["reason"], {"after the timing: ", "weights["}));
  for (const char* name : {"wrong_later", "repeats_itself"}) {
    EXPECT_EQ(row[name]["status"] + row[name]["verified"], "failedno") << name;
    EXPECT_EQ(row[name]["median_s"] + row[name]["gflops_per_s"], "") << name;
    EXPECT_EQ(samples_of(name), 0) << name;
  }
}

TEST_F(BenchTest, NoVisitTimesTheFirstRunOfAPlan) {
  bench({variant("slow_at_first", make_plan<SgdUpdate, SlowAtFirst>)});
  std::set<std::string> visits;
  for (auto& row : rows("samples.csv", samples_columns().names())) {
    EXPECT_LT(std::stod(row["seconds"]), 0.3) << "visit " << row["visit"];
    visits.insert(row["visit"]);
  }
  EXPECT_GE(visits.size(), 2U);
}

TEST_F(BenchTest, ARowStaysWhereALaterVisitCannotMakeItsPlan) {
  PlannedOnce::plans = 0;
  bench({variant("planned_once", make_plan<SgdUpdate, PlannedOnce>),
         variant("correct", plan_of<update>)});
  EXPECT_GT(PlannedOnce::plans, 1);
  auto row = summary();
  EXPECT_EQ(row["planned_once"]["status"] + row["planned_once"]["verified"], "okyes");
  EXPECT_TRUE(says(row["planned_once"]["reason"], {"its interval is of one visit"}));
  EXPECT_GT(samples_of("planned_once"), 0);
  EXPECT_EQ(row["correct"]["status"], "ok");
}

TEST_F(BenchTest, AProblemHoldsNoMemoryUntilItsNextVisit) {
  stepladder::Run run({.directory = folder / "run", .command = "test", .threads = {}});
  ProblemBench bench(run, quick);
  const auto problem = make_case<SgdUpdate>({.count = 100}, "s", "weights");
  const std::vector<Variant> variants{variant("correct", plan_of<update>)};
  bench.measure(*problem, variants);
  EXPECT_EQ(problem->copies(), 0U);
  bench.measure_again([](const Case&, double) {});
  EXPECT_EQ(problem->copies(), 0U);
  EXPECT_EQ(summary()["correct"]["status"], "ok");
}

TEST_F(BenchTest, ARowWhoseVisitsDisagreeSaysSo) {
  bench({variant("steady", make_plan<SgdUpdate, Waits<false>>),
         variant("steady_too", make_plan<SgdUpdate, Waits<false>>),
         variant("alternating", make_plan<SgdUpdate, Waits<true>>)});
  auto row = summary()["alternating"];
  EXPECT_EQ(row["status"], "ok");
  // Beside a neighbour of the test, the row is marked as disturbed instead.
  EXPECT_TRUE(!row["marked"].empty() || says(row["reason"], {"unsteady: known within "}))
      << row["reason"];
}

TEST_F(BenchTest, ASlowRowSitsOutFurtherVisits) {
  bench_all(
      {{"weights", 100}},
      {variant("slow", plan_of<takes_long>), variant("steady", make_plan<SgdUpdate, Waits<false>>),
       variant("alternating", make_plan<SgdUpdate, Waits<true>>)},
      false, {.measure = {.repetitions = 11, .budget_seconds = 0.3}});
  std::map<std::string, std::map<std::string, int>> samples;  // by variant and visit
  for (auto& row : rows("samples.csv", samples_columns().names()))
    ++samples[row["variant"]][row["visit"]];
  EXPECT_EQ(samples["slow"], (std::map<std::string, int>{{"0", 2}, {"1", 1}}));
  EXPECT_GT(samples["alternating"].size(), 2U);
  EXPECT_EQ(summary()["slow"]["status"], "ok");
  EXPECT_TRUE(says(summary()["slow"]["reason"], {"1 repetition instead of 3: slow"}));
}

// Bandwidths that are far too low: the first visit says that the row beats its roof, and the later
// ones have those that were measured again.
TEST_F(BenchTest, ARowBeyondItsRoofSaysSoAndItsCeilingIsMeasuredAgain) {
  nlohmann::json all = nlohmann::json::array();
  for (const char* level : {"", "L1", "L2", "L3", "DRAM"})
    for (const char* name : {"stream_update", "stream_copy"})
      all.push_back({{"name", *level == '\0' ? "fma_peak" : name},
                     {"unit", *level == '\0' ? "GFLOP/s" : "GB/s"},
                     {"threads", 1},
                     {"level", level},
                     {"value", *level == '\0' ? 1e3 : 1e-3}});
  folder.write("run/ceilings.json",
               nlohmann::json{{"schema_version", 1}, {"ceilings", all}}.dump());
  stepladder::Run run(
      {.directory = folder / "run", .resume = true, .command = "test", .threads = {1}});
  ProblemBench bench(run, quick);
  const auto problem = make_case<SgdUpdate>({.count = 1000, .weight_decay = 0.5F}, "s", "weights");
  VariantInfo less = *variant("less", plan_of<update>).info;  // as Winograd does
  less.normwise = true;
  Variant less_arithmetic = variant("less", plan_of<update>);
  less_arithmetic.info = &less;
  const std::vector<Variant> variants = {variant("quick", plan_of<update>), less_arithmetic};
  bench.measure(*problem, variants);
  EXPECT_TRUE(says(summary()["quick"]["reason"], {"beyond its roof: "}));
  EXPECT_EQ(summary()["less"]["reason"].find("beyond"), std::string::npos);
  bench.measure_again([](const Case&, double) {});
  const auto ceiling_of = [&](const std::string& name) {
    for (const Ceiling& c : run.ceilings())
      if (c.name == name && c.level == "L1") return c.value;
    return 0.0;
  };
  EXPECT_GT(ceiling_of("stream_update"), 1);
  EXPECT_EQ(ceiling_of("stream_copy"), 1e-3) << "no row beat it";
  EXPECT_LT(std::stod(summary()["quick"]["percent_of_roof"]), 1e4);
}

const std::vector<std::pair<std::string, std::int64_t>> two_problems = {{"a", 100}, {"b", 50}};

TEST_F(BenchTest, AVariantThatRunsNowhereHasOneRowForAllProblemsAndThreads) {
  Variant missing = variant("missing", nullptr);
  missing.why_unavailable = "built without its library";
  VariantInfo threaded = *missing.info;
  threaded.threaded = true;
  missing.info = &threaded;
  const BenchCounts counts =
      bench_all(two_problems,
                {missing, variant("lacks", make_plan<SgdUpdate, LacksLibrary>),
                 variant("limited", make_plan<SgdUpdate, Limited>)},
                false, {.threads = {1, 2}, .measure = quick.measure});
  EXPECT_EQ(counts.unavailable, 4);
  EXPECT_EQ(rows_of("missing"), std::vector<std::string>{" unavailable"});
  EXPECT_EQ(rows_of("lacks"), std::vector<std::string>{" unavailable"});
  EXPECT_EQ(rows_of("limited"), (std::vector<std::string>{"a unavailable", "b unavailable"}));
  for (auto& row : rows("summary.csv", summary_columns().names())) {
    if (row["variant"] == "limited") continue;
    EXPECT_NE(row["reason"], "");
    EXPECT_EQ(row["direction"] + row["shape"] + row["layout"] + row["suite"] + row["cache"] +
                  row["threads"] + row["ranks"] + row["repeat_command"],
              "");
  }
}

TEST_F(BenchTest, ResumingKeepsAnUnavailableRowOnceAndReplacesItWhenTheVariantRuns) {
  bench_all(two_problems, {variant("lacks", make_plan<SgdUpdate, LacksLibrary>)});
  EXPECT_EQ(bench_all(two_problems, {variant("lacks", make_plan<SgdUpdate, LacksLibrary>)}, true)
                .unavailable,
            1);
  EXPECT_EQ(rows_of("lacks"), std::vector<std::string>{" unavailable"});
  bench_all({{"a", 100}}, {variant("lacks", plan_of<throws>)}, true);
  EXPECT_EQ(rows_of("lacks"), std::vector<std::string>{"a failed"});
  bench_all(two_problems, {variant("lacks", plan_of<update>)}, true);
  std::vector<std::string> found = rows_of("lacks");  // in the order of their last visits
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"a ok", "b ok"}));
}

TEST_F(BenchTest, WhatWasMeasuredStaysWhenTheVariantCannotRunAnyMore) {
  bench_all({{"a", 100}}, {variant("fast", plan_of<update>)});
  const Variant lacks = variant("fast", make_plan<SgdUpdate, LacksLibrary>);
  EXPECT_EQ(bench_all({{"a", 100}}, {lacks}, true).kept, 1);
  EXPECT_EQ(rows_of("fast"), std::vector<std::string>{"a ok"});
  bench_all(two_problems, {lacks}, true);
  EXPECT_EQ(rows_of("fast"), (std::vector<std::string>{"a ok", " unavailable"}));
}

TEST_F(BenchTest, TheRunDescribesItsColumns) {
  bench({variant("correct", plan_of<update>)});
  EXPECT_EQ(content_of(folder / "run/columns.json"), columns_as_json());
}

TEST_F(BenchTest, TheSummaryAsJsonHasAllRowsAlsoAfterResuming) {
  bench({variant("first", plan_of<update>)});
  bench({variant("broken", plan_of<throws>)}, true);
  const auto json = nlohmann::json::parse(std::ifstream(folder / "run/summary.json"));
  EXPECT_EQ(json["columns"], nlohmann::json(summary_columns().names()));
  ASSERT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["rows"][0]["variant"], "first");
  EXPECT_GT(json["rows"][0]["median_s"], 0.0);
  EXPECT_EQ(json["rows"][0]["threads"], 1);
  EXPECT_TRUE(json["rows"][1]["median_s"].is_null());
  EXPECT_EQ(json["rows"][1].size(), summary_columns().names().size());
}

TEST_F(BenchTest, ARowThatCanBeRepeatedNamesItsProblemLiterally) {
  bench_all({{"50 %, all*", 100}}, {variant("correct", plan_of<update>)});
  EXPECT_TRUE(says(summary()["correct"]["repeat_command"], {" --problem '50 %\\, all\\*' "}));
}

TEST_F(BenchTest, AProblemTooBigForMemoryIsSkippedWithNeedAndSupply) {
  const BenchCounts counts =
      bench({variant("correct", plan_of<update>)}, false, std::int64_t{1} << 40);
  EXPECT_EQ(counts.skipped, 1);
  EXPECT_TRUE(says(summary()["correct"]["reason"], {"needs ", " GiB; ", " GiB are available"}));
}

TEST_F(BenchTest, ResumingKeepsFinishedRowsAndAddsMissingOnes) {
  bench({variant("first", plan_of<update>)});
  const std::string before = summary()["first"]["median_s"];
  const int samples = samples_of("first");
  const BenchCounts counts =
      bench({variant("first", plan_of<update>), variant("second", plan_of<update>)}, true);
  EXPECT_EQ(counts.kept, 1);
  EXPECT_EQ(counts.ok, 1);
  EXPECT_EQ(summary()["first"]["median_s"], before);
  EXPECT_EQ(samples_of("first"), samples);
  EXPECT_EQ(summary()["second"]["status"], "ok");
}

TEST_F(BenchTest, ResumingTriesAgainWhatCouldNotBeMeasuredAndReplacesItsRow) {
  Variant missing = variant("changes", nullptr);
  missing.why_unavailable = "built without its library";
  bench({missing, variant("mended", plan_of<throws>)});
  EXPECT_EQ(bench({missing, variant("mended", plan_of<throws>)}, true).failed, 1);
  EXPECT_EQ(summary().size(), 2U);
  const BenchCounts counts =
      bench({variant("changes", plan_of<update>), variant("mended", plan_of<update>)}, true);
  EXPECT_EQ(counts.ok, 2);
  EXPECT_EQ(summary()["changes"]["status"], "ok");
  EXPECT_EQ(summary()["mended"]["status"], "ok");
}

TEST_F(BenchTest, ResumingDropsSamplesWhoseRowACrashLost) {
  bench({variant("first", plan_of<update>)});
  Table(folder / "run/summary.csv", summary_columns().names()).remove_rows([](const CsvRow&) {
    return true;
  });
  bench({variant("first", plan_of<update>)}, true);
  int first_repetitions = 0;
  for (auto& row : rows("samples.csv", samples_columns().names()))
    first_repetitions += row["repetition"] == "0";
  EXPECT_EQ(first_repetitions, 1);
}

}  // namespace
}  // namespace stepladder
