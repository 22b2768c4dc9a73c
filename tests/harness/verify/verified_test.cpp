// results/<machine>/verified.json and the status of CUDA rungs: a rung with another digest, a
// failure or a problem that was left out is never reported as verified.
#include "harness/verify/verified.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "harness/adapters/primitives.hpp"
#include "harness/io/glob.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

constexpr VariantInfo first{.name = "first",
                            .technique = Technique::cuda,
                            .adds = "one kernel for all",
                            .place = Place::cuda};
constexpr VariantInfo second{
    .name = "second", .technique = Technique::cuda, .adds = "another kernel", .place = Place::cuda};
constexpr VariantInfo on_cpu{.name = "serial", .technique = Technique::serial, .adds = "a loop"};

Variant variant(const VariantInfo& info) { return {"matmul", info.name, &info, {}, ""}; }

constexpr SourceDigest digests[] = {{"kernels/convolution/cuda/first.cu", "000000000000"},
                                    {"kernels/matmul/cuda/first.cu", "0123456789ab"},
                                    {"kernels/matmul/cuda/wide/second.cu", "ba9876543210"}};
constexpr SourceDigest changed[] = {{"kernels/matmul/cuda/first.cu", "ffffffffffff"},
                                    {"kernels/matmul/cuda/wide/second.cu", "ba9876543210"}};

// A tally of one problem, which the rung passed.
DeviceTally passed(const VariantInfo& info) {
  DeviceTally tally;
  tally.passed(variant(info));
  return tally;
}

class Verified : public testing::Test {
 protected:
  // As if `verify` had run on a machine's device.
  std::vector<std::string> record(const DeviceTally& tally, const std::string& machine = "gpu",
                                  const std::string& date = "2026-01-31") {
    std::filesystem::create_directories(folder_ / machine);
    VerifiedFile file(folder_ / machine / "verified.json");
    auto not_passed = tally.record({variant(first), variant(second), variant(on_cpu)}, digests,
                                   "NVIDIA X", date, file);
    file.save();
    return not_passed;
  }
  std::string status(const VariantInfo& info, std::span<const SourceDigest> of = digests) {
    return DeviceStatus(folder_.path(), of).of(variant(info));
  }
  std::string damage(const std::string& text) {
    folder_.write("gpu/verified.json", text);
    return error_of([&] { DeviceStatus(folder_.path(), digests); });
  }

  TemporaryFolder folder_;
};

TEST_F(Verified, WithoutFilesNothingRanOnADevice) {
  EXPECT_EQ(status(first), "never run on a device");
}

TEST_F(Verified, ARungThatPassedIsVerifiedUntilItsSourceChanges) {
  EXPECT_EQ(record(passed(first)),
            std::vector<std::string>{"matmul second: supports none of the problems"});
  EXPECT_EQ(status(first), "verified on NVIDIA X, 2026-01-31");
  EXPECT_EQ(status(first, changed), "changed since it was verified on NVIDIA X, 2026-01-31");
  EXPECT_EQ(status(second), "never run on a device");
}

TEST_F(Verified, ARungWithoutASourceFileIsReportedAndNotRecorded) {
  VerifiedFile file(folder_.path() / "verified.json");
  EXPECT_EQ(passed(first).record({variant(first)}, std::span(digests).first(1), "NVIDIA X",
                                 "2026-01-31", file),
            std::vector<std::string>{"matmul first: has no file first.cu"});
  file.save();
  const std::string text = content_of(folder_ / "verified.json");
  EXPECT_NE(text.find("\"verified\": {}"), std::string::npos) << text;
}

// It is published: a diff shows what has changed.
TEST_F(Verified, TheFileHasALineForEachField) {
  record(passed(first));
  EXPECT_EQ(content_of(folder_ / "gpu/verified.json"), R"({
 "failed": {},
 "schema_version": 1,
 "verified": {
  "kernels/matmul/cuda/first.cu": {
   "date": "2026-01-31",
   "device": "NVIDIA X",
   "digest": "0123456789ab"
  }
 }
}
)");
}

TEST_F(Verified, OneFailureAmongManyPassesCountsAndReplacesAnEarlierPass) {
  record(passed(first));
  DeviceTally tally = passed(first);
  tally.failed(variant(first));
  tally.passed(variant(first));
  EXPECT_EQ(record(tally, "gpu", "2026-02-01").front(), "matmul first: failed");
  EXPECT_EQ(status(first), "FAILED on NVIDIA X, 2026-02-01");
  EXPECT_EQ(status(first, changed), "changed since it failed on NVIDIA X, 2026-02-01");
  record(passed(first), "gpu", "2026-02-02");
  EXPECT_EQ(status(first), "verified on NVIDIA X, 2026-02-02");
}

TEST_F(Verified, AProblemThatWasLeftOutVerifiesNothing) {
  DeviceTally tally = passed(first);
  tally.left_out(variant(first));
  EXPECT_EQ(record(tally).front(), "matmul first: was not tried on every problem");
  EXPECT_EQ(status(first), "never run on a device");
}

TEST_F(Verified, ARungThatWasNotTriedKeepsItsEntry) {
  DeviceTally both = passed(first);
  both.passed(variant(second));
  record(both);
  record(passed(second), "gpu", "2026-02-01");
  EXPECT_EQ(status(first), "verified on NVIDIA X, 2026-01-31");
  EXPECT_EQ(status(second), "verified on NVIDIA X, 2026-02-01");
}

TEST_F(Verified, RungsOfTheCpuAreNotRecorded) {
  DeviceTally tally = passed(on_cpu);
  tally.failed(variant(on_cpu));
  record(tally);
  const VerifiedFile file(folder_ / "gpu/verified.json");
  EXPECT_TRUE(file.passed().empty() && file.failed().empty());
}

TEST_F(Verified, AFailureOnOneMachineIsReportedWhateverAnotherFound) {
  DeviceTally failed;
  failed.failed(variant(first));
  record(passed(first), "a");
  record(failed, "b");
  EXPECT_EQ(status(first), "FAILED on NVIDIA X, 2026-01-31");
  record(passed(first), "b", "2026-02-01");
  EXPECT_EQ(status(first), "verified on NVIDIA X, 2026-02-01; NVIDIA X, 2026-01-31");
}

TEST_F(Verified, ADamagedFileIsAnErrorThatNamesFileAndLine) {
  const auto with = [](const std::string& entry) {
    return "{\"schema_version\": 1, \"failed\": {},\n\"verified\": "
           "{\n\"kernels/matmul/cuda/first.cu\": " +
           entry + "}}";
  };
  const std::pair<std::string, const char*> damages[] = {
      {"{\n \"schema_version\": 1,\n", "3:"},
      {R"({"schema_version": 2, "verified": {}, "failed": {}})", "1:*schema_version"},
      {R"({"schema_version": 0, "verified": {}, "failed": {}})", "1:*schema_version"},
      {R"({"schema_version": 1, "verified": {}, "failed": {}, "x": 1})", "1:*x"},
      {R"({"schema_version": 1})", "1:*verified"},
      {with(R"({"digest": "0123456789AB", "date": "2026-01-31", "device": "X"})"),
       "3:*digest*12 hex digits"},
      {with(R"({"digest": "0123456789a", "date": "2026-01-31", "device": "X"})"),
       "3:*12 hex digits"},
      {with(R"({"digest": "0123456789ab", "date": "31.1.2026", "device": "X"})"),
       "3:*date*a date such as \"2026-01-31\""},
      {with(R"({"digest": "0123456789ab", "date": "2026-01-31"})"), "3:*device"},
      {with(R"({"digest": "0123456789ab", "date": "2026-01-31", "device": "X", "by": "Y"})"),
       "3:*by"}};
  for (const auto& [text, error] : damages) {
    const std::string found = damage(text);
    EXPECT_TRUE(glob_matches((folder_ / "gpu/verified.json").string() + ":" + error + "*", found))
        << "expected " << error << ", found " << found << " in " << text;
  }
  EXPECT_EQ(damage(with(R"({"digest": "0123456789ab", "date": "2026-01-31", "device": "X"})")), "");
}

TEST_F(Verified, TheFirstOfSeveralDamagedFilesIsNamed) {
  for (char machine = 'p'; machine >= 'a'; --machine)
    folder_.write(std::string(1, machine) + "/verified.json", "{");
  EXPECT_TRUE(says(error_of([&] { DeviceStatus(folder_.path(), digests); }),
                   {(folder_ / "a/verified.json").string()}));
}

TEST_F(Verified, AFolderThatCannotBeReadIsReported) {
  const DeviceStatus status(folder_ / "nowhere", digests);
  EXPECT_TRUE(says(status.of(variant(first)),
                   {"not known", (folder_ / "nowhere").string() + " cannot be read"}));
}

TEST(SourceDigests, EveryCudaRungHasOne) {
  std::set<std::string> files;  // "primitive/name.cu"
  for (const SourceDigest& source : source_digests()) {
    EXPECT_EQ(source.digest.size(), 12U) << source.file;
    const std::filesystem::path path = source.file;
    const std::string primitive = std::next(path.begin())->string();
    EXPECT_TRUE(files.insert(primitive + "/" + path.filename().string()).second) << source.file;
  }
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : type->variants())
      if (variant.info->place == Place::cuda) {
        EXPECT_TRUE(files.contains(std::string(type->name()) + "/" + variant.info->name + ".cu"))
            << type->name() << " " << variant.name;
      }
}

}  // namespace
}  // namespace stepladder
