// A run's files survive crashes: whole rows, nothing lost, nothing of others overwritten.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "harness/results/run_folder.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

const std::vector<std::string> columns = {"name", "value"};

std::ptrdiff_t files_in(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(Table, GrowsRowByRowAndGoesOnWhereItEnded) {
  const TemporaryFolder folder;
  {
    Table table(folder / "t.csv", columns);
    table.append({{"a", "1"}, {"b", "2"}});
    EXPECT_EQ(content_of(folder / "t.csv"), "name,value\na,1\nb,2\n");
  }
  Table(folder / "t.csv", columns).append({{"c", "3"}});
  EXPECT_EQ(content_of(folder / "t.csv"), "name,value\na,1\nb,2\nc,3\n");
}

TEST(Table, ALineTornByACrashIsCut) {
  const TemporaryFolder folder;
  folder.write("t.csv", "name,value\na,1\nb,\"2");
  Table(folder / "t.csv", columns).append({{"c", "3"}});
  EXPECT_EQ(content_of(folder / "t.csv"), "name,value\na,1\nc,3\n");
}

TEST(Table, ATornHeaderIsWrittenAgain) {
  const TemporaryFolder folder;
  folder.write("t.csv", "name,va");
  { const Table table(folder / "t.csv", columns); }
  EXPECT_EQ(content_of(folder / "t.csv"), "name,value\n");
}

TEST(Table, GoesOnWhereASpreadsheetSavedIt) {
  const TemporaryFolder folder;
  for (const std::string before : {"\xEF\xBB\xBFname,value\na,1\n", "name,value\r\na,1\r\n",
                                   "\xEF\xBB\xBFname,value\r\na,1\r\n"}) {
    folder.write("t.csv", before);
    Table table(folder / "t.csv", columns);
    table.append({{"b", "2"}});
    EXPECT_EQ(content_of(folder / "t.csv"), before + "b,2\n");
    table.remove_rows([](const CsvRow& row) { return row.text("value") == "2"; });
    EXPECT_EQ(content_of(folder / "t.csv"), "name,value\na,1\n");
  }
}

TEST(Table, AFileWithOtherColumnsIsRefusedAndLeftAlone) {
  const TemporaryFolder folder;
  for (const char* other : {"name,price\na,1\n", "name,price\na,1", "a shopping list"}) {
    folder.write("t.csv", other);
    EXPECT_TRUE(says(error_of([&] { Table(folder / "t.csv", columns); }),
                     {"t.csv:1", "columns", "another folder"}));
    EXPECT_EQ(content_of(folder / "t.csv"), other);
  }
}

TEST(Table, RowsOfAnotherWidthAreAMistakeOfTheProgram) {
  const TemporaryFolder folder;
  Table table(folder / "t.csv", columns);
  EXPECT_THROW(table.append({{"a"}}), std::logic_error);
  EXPECT_EQ(content_of(folder / "t.csv"), "name,value\n");
}

TEST(Table, TakesOutRows) {
  const TemporaryFolder folder;
  Table table(folder / "t.csv", columns);
  table.append({{"a", "1"}, {"b,\"", "2"}, {"c", "3"}});
  table.remove_rows([](const CsvRow& row) { return row.text("name") == "a"; });
  table.append({{"d", "4"}});
  EXPECT_EQ(content_of(folder / "t.csv"), "name,value\n\"b,\"\"\",2\nc,3\nd,4\n");
  EXPECT_EQ(files_in(folder), 1);
}

// The limit on the size of a file stands in for a full disk: part of the rows can be written.
TEST(Table, RowsThatDoNotFitLeaveTheFileAsItWas) {
  const TemporaryFolder folder;
  Table table(folder / "t.csv", columns);
  table.append({{"a", "1"}});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] {
    table.append({{"b", std::string(50, '2')}, {"c", std::string(50, '3')}});
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(says(error, {"t.csv", "cannot be written"}));
  EXPECT_EQ(content_of(folder / "t.csv"), "name,value\na,1\n");
}

TEST(RunFolder, IsMadeWithTheFoldersAboveIt) {
  const TemporaryFolder folder;
  const RunFolder run(folder / "a/b", false);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
  EXPECT_FALSE(run.resumed());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "a/b"));
}

TEST(RunFolder, ARunIsNotWrittenOverButGoneOnWith) {
  const TemporaryFolder folder;
  RunFolder(folder.path(), false).write_json("environment.json", {{"seed", 7}});
  EXPECT_TRUE(says(error_of([&] { RunFolder(folder.path(), false); }),
                   {folder.path().string(), "--resume", "--out"}));
  const RunFolder run(folder.path(), true);
  EXPECT_TRUE(run.resumed());
  EXPECT_EQ(run.read_json("environment.json")["seed"], 7);
}

TEST(RunFolder, APlaceThatTakesNoFilesIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "").string();
  EXPECT_TRUE(
      says(error_of([&] { RunFolder(file + "/run", false); }), {file + "/run", "cannot be made"}));
  EXPECT_TRUE(says(error_of([&] { RunFolder(file, false); }), {file, "cannot be made"}));
  EXPECT_TRUE(
      says(error_of([] { RunFolder("/proc/self", false); }), {"/proc/self", "cannot be written"}));
}

TEST(RunFolder, ABrokenJsonFileReadsAsNone) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path(), false);
  EXPECT_TRUE(run.read_json("x.json").is_null());
  folder.write("x.json", "{\"half\": ");
  EXPECT_TRUE(run.read_json("x.json").is_null());
  folder.write("x.json", std::string(200000, '[') + std::string(200000, ']'));
  EXPECT_TRUE(run.read_json("x.json").is_null());  // too deep to be written again
  run.write_json("x.json", {{"whole", true}});
  EXPECT_EQ(run.read_json("x.json")["whole"], true);
  EXPECT_EQ(files_in(folder), 1);
}

}  // namespace
}  // namespace stepladder
