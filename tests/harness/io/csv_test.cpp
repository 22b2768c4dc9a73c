// Rows are read as they were written. Errors of malformed files name file, line and expectation.
#include "harness/io/csv.hpp"

#include <gtest/gtest.h>

#include "harness/problem/random.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

std::string error_of_file(const std::string& content) {
  const TemporaryFolder folder;
  return error_of([&] { CsvFile(folder.write("f.csv", content), {"a", "b"}, {"c"}); });
}

TEST(Csv, FieldsAreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const std::vector<std::string> parts = {"x", ",", "\"", " ", "\"\"", "é", "'", ";", "\\", "1e-9"};
  Random random(1);
  std::string text = "a,b\n";
  std::vector<std::vector<std::string>> rows;
  for (int row = 0; row < 300; ++row) {
    std::vector<std::string> fields = {"-", ""};
    for (std::string& field : fields)
      for (std::int64_t i = random.integer(0, 6); i > 0; --i)
        field += parts[static_cast<std::size_t>(
            random.integer(0, static_cast<std::int64_t>(parts.size()) - 1))];
    text += csv_line(fields);
    rows.push_back(fields);
  }
  const CsvFile file(folder.write("f.csv", text), {"a", "b"});
  ASSERT_EQ(file.rows().size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(file.rows()[i].text("a"), rows[i][0]);
    EXPECT_EQ(file.rows()[i].text("b"), rows[i][1]);
  }
}

TEST(Csv, OneRowIsOneLine) {
  EXPECT_EQ(csv_line({"first\nsecond\r", "b"}), "\"first second \",b\n");
}

TEST(Csv, QuotesOnlyFieldsThatNeedIt) {
  EXPECT_EQ(csv_line({"a b", "c,d", "e\"f", ""}), "a b,\"c,d\",\"e\"\"f\",\n");
}

TEST(Csv, ReadsFilesOfSpreadsheetsAndOtherSystems) {
  const TemporaryFolder folder;
  const CsvFile file(folder.write("f.csv",
                                  "\xEF\xBB\xBF"
                                  "a,b\r\n1,2\r\n\r\n3,4"),
                     {"a", "b"});
  ASSERT_EQ(file.rows().size(), 2U);
  EXPECT_EQ(file.rows()[0].text("a"), "1");
  EXPECT_EQ(file.rows()[1].text("b"), "4");
}

TEST(Csv, TextIsUtf8InBothDirections) {
  EXPECT_EQ(csv_line({"a\xff", "é"}), "a\xEF\xBF\xBD,é\n");
  EXPECT_TRUE(says(error_of_file("a,b\n1,2\n\xfc,4\n"), {"f.csv:3", "not UTF-8"}));
}

TEST(Csv, ATornLineIsLeftOutWhereACrashMayHaveLeftIt) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("f.csv", "a,b\n1,2\n3,4");
  const CsvFile file(path, {"a", "b"}, {}, LastLine::may_be_torn);
  EXPECT_EQ(file.rows().size(), 1U);
  EXPECT_EQ(file.torn(), path.string() + ":3");
}

TEST(Csv, ColumnsAreFoundByName) {
  const TemporaryFolder folder;
  const CsvFile file(folder.write("f.csv", "c,b,a\n3,2,1\n"), {"a", "b"}, {"c", "d"});
  EXPECT_EQ(file.rows()[0].text("a"), "1");
  EXPECT_EQ(file.rows()[0].text("c"), "3");
  EXPECT_TRUE(file.rows()[0].has("c"));
  EXPECT_FALSE(file.rows()[0].has("d"));
  EXPECT_EQ(file.rows()[0].text("d"), "");
}

TEST(Csv, MalformedFilesNameFileLineAndExpectation) {
  EXPECT_TRUE(says(error_of_file("a,b\n1,2\n3\n"), {"f.csv:3", "1 fields", "the header has 2"}));
  EXPECT_TRUE(says(error_of_file("a,b\n1,2,3\n"), {"f.csv:2", "3 fields", "the header has 2"}));
  EXPECT_TRUE(says(error_of_file("a\n1\n"), {"f.csv:1", "lacks the column \"b\"", "expected a,b"}));
  EXPECT_TRUE(says(error_of_file("a,b,z\n"), {"f.csv:1", "unknown column \"z\"", "expected a,b"}));
  EXPECT_TRUE(says(error_of_file("a,b,a\n"), {"f.csv:1", "column \"a\" comes twice"}));
  EXPECT_TRUE(says(error_of_file("a,b\n\n\"1,2\n"), {"f.csv:3", "quotation mark is not closed"}));
  EXPECT_TRUE(
      says(error_of_file("a,b\n\"1\"x,2\n"), {"f.csv:2", "\"x\" follows", "expected a comma"}));
  EXPECT_TRUE(says(error_of_file(""), {"f.csv", "empty; expected the header a,b"}));
}

TEST(Csv, AMessageIsOneLineOfText) {
  const std::string field("1\0\x1b\t2", 5);
  EXPECT_TRUE(
      says(error_of_file("a," + field + "\n"), {"f.csv:1: the header lacks the column \"b\""}));
  EXPECT_TRUE(says(error_of_file("a,b," + field + "\n"), {"unknown column \"1\\x00\\x1b\\t2\";"}));
  const TemporaryFolder folder;
  const CsvFile file(folder.write("f.csv", "a,b\n" + field + ",1\n"), {"a", "b"});
  EXPECT_TRUE(says(error_of([&] { file.rows()[0].integer("a", 1, 5); }),
                   {"f.csv:2: column a holds \"1\\x00\\x1b\\t2\"; expected"}));
}

TEST(Csv, AMissingFileIsNamed) {
  const TemporaryFolder folder;
  EXPECT_TRUE(says(error_of([&] { CsvFile(folder / "none.csv", {"a"}); }),
                   {"none.csv", "cannot open: No such file"}));
}

TEST(Csv, WholeNumbersInARange) {
  const TemporaryFolder folder;
  const CsvFile file(folder.write("f.csv", "a,b\n12,\n1.5,-1\nx,9223372036854775808\n 1,1 \n"),
                     {"a", "b"}, {"c"});
  const auto& rows = file.rows();
  EXPECT_EQ(rows[0].integer("a", 1, 12), 12);
  EXPECT_EQ(rows[0].integer("b", 1, 5, 3), 3);
  EXPECT_EQ(rows[0].integer("c", 1, 5, 4), 4);
  const auto rejects = [&](std::size_t row, const char* column, const std::string& what) {
    return says(error_of([&] { rows[row].integer(column, 1, 11); }),
                {"f.csv:" + std::to_string(row + 2), what, "expected a whole number from 1 to 11"});
  };
  EXPECT_TRUE(rejects(0, "a", "column a holds \"12\""));
  EXPECT_TRUE(rejects(0, "b", "column b holds \"\""));
  EXPECT_TRUE(rejects(1, "a", "column a holds \"1.5\""));
  EXPECT_TRUE(rejects(1, "b", "column b holds \"-1\""));
  EXPECT_TRUE(rejects(2, "a", "column a holds \"x\""));
  EXPECT_TRUE(rejects(2, "b", "column b holds \"9223372036854775808\""));
  EXPECT_TRUE(rejects(3, "a", "column a holds \" 1\""));
  EXPECT_TRUE(rejects(3, "b", "column b holds \"1 \""));
}

}  // namespace
}  // namespace stepladder
