// The project's suites load. Errors in a suite name file, line and expectation.
#include "harness/problem/suites.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/adapters/primitives.hpp"
#include "harness/io/nearest.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

TEST(Suites, TheProjectsOwnLoadWithProblemsThatHaveNamesAndCosts) {
  for (const PrimitiveType* type : primitives()) {
    const auto problems = load_suite(*type, suite_file(*type), "", 2);
    EXPECT_GE(problems.size(), 10U) << type->name();
    std::set<std::string> names;
    for (const auto& problem : problems) {
      const ProblemInfo& info = problem->info();
      EXPECT_TRUE(names.insert(info.suite + " " + info.name + " " + info.direction).second)
          << info.name;
      EXPECT_EQ(info.primitive, type->name());
      if (info.primitive == "reorder")  // copies
        EXPECT_EQ(info.flops, 0) << info.name;
      else
        EXPECT_GT(info.flops, 0) << info.name;
      EXPECT_GT(info.bytes_read, 0) << info.name;
      EXPECT_GT(info.bytes_written, 0) << info.name;
      EXPECT_GE(problem->memory_needed(2), problem->memory_needed(1) + problem->operand_bytes())
          << info.name;
    }
    EXPECT_FALSE(load_suite(*type, suite_file(*type), "layers", 2).empty()) << type->name();
  }
}

// Runs of several suites write to one folder, where name and direction identify a row.
TEST(Suites, ANameStandsForOneProblemInAllSuites) {
  for (const PrimitiveType* type : primitives()) {
    std::map<std::string, std::string> known;
    for (const auto& problem : load_suite(*type, suite_file(*type), "", 2)) {
      const ProblemInfo& info = problem->info();
      const std::string what = info.shape + " " + info.layout;
      const auto [at, is_new] = known.try_emplace(info.name + " " + info.direction, what);
      EXPECT_EQ(at->second, what) << type->name() << " " << at->first;
    }
  }
}

TEST(Suites, OneSuiteIsSelectedFromAFile) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "own.csv", "suite,name,count,source\nmine,one,5,\nmine,two,6,\nother,three,7,\n");
  const PrimitiveType& type = primitive("all_reduce");  // sum and mean of each
  EXPECT_EQ(load_suite(type, file, "mine", 2).size(), 4U);
  EXPECT_EQ(load_suite(type, file, "", 2).size(), 6U);
}

TEST(Suites, AnUnknownSuiteSuggestsTheNearest) {
  const PrimitiveType& type = primitive("matmul");
  try {
    load_suite(type, suite_file(type), "layer", 1);
    FAIL() << "nothing was thrown";
  } catch (const UnknownName& error) {
    EXPECT_EQ(error.kind(), "suite");
    EXPECT_EQ(error.suggestions().front(), "layers");
  }
}

// The error of a file with this line after a valid one; it is the third line of the file.
std::string error_of_line(const std::string& name, const std::string& line) {
  static const std::map<std::string, std::string> good = {
      {"matmul", "suite,name,m,n,k,transpose_a,transpose_b,source\ns,good,4,5,6,0,0,\n"},
      {"convolution",
       "suite,name,batch,in_channels,height,width,out_channels,kernel_h,kernel_w,stride_h,stride_w,"
       "pad_h,pad_w,"
       "direction,source,groups,layout\ns,good,1,2,5,5,2,3,3,1,1,1,1,forward,,2,nhwc\n"},
      {"max_pool",
       "suite,name,batch,channels,height,width,window_h,window_w,stride_h,stride_w,pad_h,pad_w,"
       "direction,source,epilogue,layout\n"
       "s,good,1,2,5,5,2,2,2,2,0,0,backward,,bias_relu,\n"},
      {"average_pool",
       "suite,name,batch,channels,height,width,window_h,window_w,stride_h,stride_w,pad_h,pad_w,"
       "direction,source,count,layout\n"
       "s,good,1,2,50,50,17,16,2,2,0,0,backward,,exclude_padding,chwn\n"},
      {"layers", "suite,name,batch,channels,spatial,layer,source\ns,good,4,5,6,relu,\n"},
      {"reorder",
       "suite,name,batch,channels,height,width,from,to,source\ns,good,1,2,5,5,nchw,chwn,\n"},
      {"low_precision", "suite,name,m,n,k,source\ns,good,5,6,7,\n"},
      {"sgd_update", "suite,name,count,source\ns,good,5,\n"},
      {"all_reduce", "suite,name,count,source\ns,good,5,\n"}};
  const TemporaryFolder folder;
  const auto file = folder.write("own.csv", good.at(name) + line);
  return error_of([&] { load_suite(primitive(name), file, "s", 2); });
}

struct BadLine {
  const char* primitive;
  const char* line;
  const char* found;     // in the message
  const char* expected;  // in the message
};

const BadLine bad_lines[] = {
    {"matmul", "s,bad,0,5,6,0,0,", "column m holds \"0\"", "whole number from 1 to 16777216"},
    {"matmul", "s,bad,4,5.5,6,0,0,", "column n holds \"5.5\"", "whole number from 1"},
    {"matmul", "s,bad,4,5,99999999,0,0,", "column k holds \"99999999\"", "to 16777216"},
    {"matmul", "s,bad,4,5,6,yes,0,", "column transpose_a holds \"yes\"",
     "whole number from 0 to 1"},
    {"matmul", "s,bad,4,5,6,0,", "7 fields", "the header has 8"},
    {"matmul", "s,bad,4,5,6,0,0,\"no end", "quotation mark is not closed", ""},
    {"matmul", ",bad,4,5,6,0,0,", "needs a suite and a name", ""},
    {"matmul", "s,,4,5,6,0,0,", "needs a suite and a name", ""},
    {"matmul", "s,good,8,5,6,0,0,", "has a problem good, forward, already", "own.csv:2"},
    {"matmul", "other,bad,x,5,6,0,0,", "column m holds \"x\"", "whole number"},
    {"convolution", "s,bad,1,2,5,5,2,3,3,1,1,1,1,back,,1,", "column direction holds \"back\"",
     "expected forward,"},
    {"convolution", "s,bad,1,2,5,5,2,9,3,1,1,1,1,forward,,1,", "kernel 9x3 is larger", "input 7x7"},
    {"convolution", "s,bad,1,2,5,5,2,3,3,1,1,1,1,forward,,1,nwhc", "column layout holds \"nwhc\"",
     "expected nothing, nchw, nhwc, chwn or nchw16c"},
    {"convolution", "s,bad,1,3,5,5,2,3,3,1,1,1,1,forward,,2,", "groups 2 must divide",
     "in_channels 3"},
    {"convolution", "s,bad,1,2,5,5,2,3,3,0,1,1,1,forward,,1,", "column stride_h holds \"0\"",
     "from 1"},
    {"convolution", "s,bad,1048576,1048576,1048576,1048576,2,3,3,1,1,1,1,forward,,1,",
     "x has 1.21e+24 elements", "expected 2.8e14 at most"},
    {"max_pool", "s,bad,1,2,5,5,2,2,2,2,0,0,sideways,,,", "column direction holds \"sideways\"",
     "forward or backward"},
    {"max_pool", "s,bad,1,2,5,5,2,2,2,2,0,0,forward,,relu,", "column epilogue holds \"relu\"",
     "nothing or bias_relu"},
    {"max_pool", "s,bad,1,2,5,5,2,2,2,2,0,0,forward,,,hwcn", "column layout holds \"hwcn\"",
     "expected nothing, nchw, nhwc, chwn or nchw16c"},
    {"max_pool", "s,bad,1,2,5,5,2,2,2,2,0,0,forward,,bias_relu,chwn", "epilogue in layout chwn",
     "expected nchw"},
    {"max_pool", "s,bad,1,2,50,50,17,16,2,2,0,0,forward,,,", "17x16", "256"},
    {"max_pool", "s,bad,1048576,1048576,1048576,1048576,2,2,2,2,0,0,forward,,,", "elements",
     "expected 2.8e14 at most"},
    {"average_pool", "s,bad,1,2,5,5,2,2,2,2,0,0,sideways,,,", "column direction holds \"sideways\"",
     "forward or backward"},
    {"average_pool", "s,bad,1,2,5,5,2,2,2,2,0,0,forward,,some,", "column count holds \"some\"",
     "nothing, include_padding or exclude_padding"},
    {"average_pool", "s,bad,1,2,5,5,2,2,2,2,2,0,forward,,,", "padding 2x0", "window 2x2"},
    {"average_pool", "s,bad,1,2,5,5,6,2,2,2,0,0,forward,,,", "window 6x2", "padded input 5x5"},
    {"average_pool", "s,bad,1048576,1048576,1048576,1048576,2,2,2,2,0,0,forward,,,", "elements",
     "expected 2.8e14 at most"},
    {"low_precision", "s,bad,1,2,65537,", "k is 65537", "int8 needs at most 65536"},
    {"reorder", "s,bad,1,2,5,5,nchw,nchw,", "from nchw to nchw", "expected two layouts"},
    {"reorder", "s,bad,1,2,5,5,int8,int8,", "from int8 to int8", "expected two layouts"},
    {"reorder", "s,bad,1,2,5,5,chwn,int8,", "from fp32 in chwn to int8", "nchw on both"},
    {"reorder", "s,bad,1,2,5,5,bf16,int8,", "from bf16 in nchw to int8", "fp32 on one side"},
    {"reorder", "s,bad,1,2,5,5,nchw,16c,", "column to holds \"16c\"", "fp16 or int8"},
    {"reorder", "s,bad,0,2,5,5,nchw,chwn,", "column batch holds \"0\"", "whole number from 1"},
    {"layers", "s,bad,4,5,6,rely,", "column layer holds \"rely\"", "dropout, lrn or softmax"},
    {"layers", "s,bad,4,5,6,softmax,", "column spatial holds 6", "expected 1 for softmax"},
    {"layers", "s,bad,1048576,1048576,1048576,relu,", "elements", "expected 2.8e14 at most"},
    {"sgd_update", "s,bad,0,", "column count holds \"0\"", "whole number from 1"},
    {"all_reduce", "s,bad,-1,", "column count holds \"-1\"", "whole number from 0"},
};

TEST(Suites, BadLinesNameFileLineAndExpectation) {
  for (const BadLine& bad : bad_lines)
    EXPECT_TRUE(says(error_of_line(bad.primitive, std::string(bad.line) + "\n"),
                     {"own.csv:3: ", bad.found, bad.expected}))
        << bad.line;
}

TEST(Suites, ATriangleIsSquareAndWithoutEpilogue) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& line) {
    const auto file = folder.write(
        "own.csv",
        "suite,name,m,n,k,transpose_a,transpose_b,epilogue,triangle,source\n" + line + "\n");
    return error_of([&] { load_suite(primitive("matmul"), file, "s", 1); });
  };
  EXPECT_EQ(error("s,good,5,5,6,0,1,,lower,"), "");
  EXPECT_TRUE(says(error("s,bad,5,6,6,0,1,,lower,"), {"triangle of 5 x 6", "m = n"}));
  EXPECT_TRUE(says(error("s,bad,5,5,6,0,1,bias,lower,"), {"triangle of 5 x 5", "no epilogue"}));
  EXPECT_TRUE(says(error("s,bad,5,5,6,0,1,,upper,"),
                   {"column triangle holds \"upper\"", "nothing or lower"}));
}

TEST(Suites, TheOtherLinesOfTheseFilesAreValid) {
  for (const char* name : {"matmul", "convolution", "max_pool", "average_pool", "sgd_update",
                           "all_reduce", "reorder", "low_precision", "layers"})
    EXPECT_EQ(error_of_line(name, ""), "");
}

TEST(Suites, AFileWithoutProblemsIsRejected) {
  const TemporaryFolder folder;
  const auto file = folder.write("own.csv", "suite,name,count,source\n");
  EXPECT_TRUE(says(error_of([&] { load_suite(primitive("sgd_update"), file, "", 1); }),
                   {"own.csv", "only a header"}));
}

TEST(Suites, AFileOfAnotherPrimitiveIsRejected) {
  EXPECT_TRUE(says(
      error_of([] { load_suite(primitive("matmul"), suite_file(primitive("max_pool")), "", 1); }),
      {"max_pool.csv:1", "lacks the column \"m\"",
       "expected suite,name,m,n,k,transpose_a,transpose_b"}));
}

TEST(Shapes, TakeTheSuiteColumnsInOrderAndDefaults) {
  const auto products = shape_problems(primitive("matmul"), "64x512x784 transpose_b=1", 1);
  ASSERT_EQ(products.size(), 1U);
  const ProblemInfo& product = products.front()->info();
  EXPECT_EQ(product.suite, "shape");
  EXPECT_EQ(product.name, "64x512x784 transpose_b=1");
  EXPECT_EQ(product.shape, "64x512x784 nt");
  EXPECT_EQ(shape_problems(primitive("matmul"), "4x5x6x1", 1).front()->info().shape, "4x5x6 tn");
  EXPECT_EQ(shape_problems(primitive("sgd_update"), "100", 1).size(), 6U);  // of each optimizer
}

TEST(Shapes, WithoutADirectionHaveAll) {
  const auto all = shape_problems(primitive("convolution"), "2x3x8x9x4x5x3 stride_w=2 pad_h=1", 1);
  std::vector<std::string> directions;
  for (const auto& problem : all) {
    directions.push_back(problem->info().direction);
    EXPECT_EQ(problem->info().shape, "n2 c3 h8 w9 k4 r5 s3 stride1x2 pad1x0 g1");
  }
  EXPECT_EQ(directions, (std::vector<std::string>{"forward", "backward_data", "backward_weights"}));
  EXPECT_EQ(shape_problems(primitive("max_pool"), "1x1x4x4x2x2 direction=backward", 1).size(), 1U);
}

TEST(Shapes, ErrorsNameTheShapeAndWhatWasExpected) {
  const auto error = [](const char* name, const char* text) {
    return error_of([&] { shape_problems(primitive(name), text, 1); });
  };
  EXPECT_TRUE(says(error("matmul", "64x512"),
                   {"--shape '64x512': no k is given", "expected mxnxk, for example 64x64x64"}));
  EXPECT_TRUE(says(error("matmul", "1x2x3x0x0x0"), {"at most 5 sizes"}));
  EXPECT_TRUE(says(error("matmul", "1x2xa"), {"column k holds \"a\"", "whole number from 1"}));
  EXPECT_TRUE(says(error("matmul", "1x2x3x"), {"column transpose_a holds \"\""}));
  EXPECT_TRUE(says(error("matmul", "1x2x3 m=4"), {"\"m=4\" gives no further column"}));
  EXPECT_TRUE(says(error("matmul", "1x2x3 fast"), {"\"fast\" gives no", "COLUMN=VALUE"}));
  EXPECT_TRUE(says(error("max_pool", "1x1x2x2x3x3"), {"window 3x3 is larger"}));
  EXPECT_TRUE(says(error("layers", "3"), {"no channels is given", "batchxchannels"}));
}

}  // namespace
}  // namespace stepladder
