// A checkpoint comes back bit for bit or is refused with a reason, and whatever happens to a file
// or its writer, the one before stays.
#include "harness/training/checkpoint.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <bit>
#include <csignal>
#include <cstring>
#include <iterator>
#include <set>

#include "harness/problem/random.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> identity = {"network: mnist_cnn", "batch: 64"};

Checkpoint some_checkpoint(std::int64_t step, std::size_t length = 5) {
  Random random(static_cast<std::uint64_t>(step));
  std::vector<float> parameters(length);
  for (float& value : parameters) value = random.uniform(-1, 1);
  return {.identity = identity,
          .progress = {{"step", step}, {"seconds", 0.1 + 0.2}},
          .arrays = {{"parameters", parameters}, {"state1", {}}, {"state2", {1, 2}}}};
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

void expect_same(const Checkpoint& got, const Checkpoint& expected) {
  EXPECT_EQ(got.identity, expected.identity);
  EXPECT_EQ(got.progress, expected.progress);
  ASSERT_EQ(got.arrays.size(), expected.arrays.size());
  for (std::size_t i = 0; i < got.arrays.size(); ++i) {
    EXPECT_EQ(got.arrays[i].first, expected.arrays[i].first);
    EXPECT_EQ(bits_of(got.arrays[i].second), bits_of(expected.arrays[i].second));
  }
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

// A folder with the checkpoints of steps 10 and 20.
class CheckpointFiles : public testing::Test {
 protected:
  CheckpointFiles() : checkpoints_(folder_ / "checkpoints") {
    checkpoints_.save(10, some_checkpoint(10));
    checkpoints_.save(20, some_checkpoint(20));
    older_ = checkpoints_.files_of(identity).at(1);
    newest_ = checkpoints_.files_of(identity).at(0);
    content_ = content_of(newest_);
  }

  void write_newest(std::string_view content) const {
    fs::remove_all(newest_);
    std::ofstream(newest_, std::ios::binary) << content;
  }

  // The newest, and that no file was refused.
  std::optional<Checkpoint> loaded() const {
    std::vector<std::string> refused;
    std::optional<Checkpoint> newest = checkpoints_.load(identity, refused);
    EXPECT_TRUE(refused.empty()) << refused[0];
    return newest;
  }

  // That the newest file is refused and the older one is used. Returns the reason.
  std::string refusal() const {
    std::vector<std::string> refused;
    const std::optional<Checkpoint> loaded = checkpoints_.load(identity, refused);
    EXPECT_TRUE(loaded.has_value() && loaded->progress.at("step") == 10);
    EXPECT_EQ(refused.size(), 1U);
    if (refused.size() != 1) return "";
    const std::string file = newest_.string() + ": ";
    EXPECT_TRUE(refused[0].starts_with(file)) << refused[0];
    return refused[0].substr(std::min(file.size(), refused[0].size()));
  }

  // A file with this header and a checksum that fits it.
  static std::string with_header(const std::string& header, const std::string& arrays = "") {
    const std::uint64_t size = header.size();
    std::string text = "stepladder checkpoint 1\n";
    text.append(reinterpret_cast<const char*>(&size), sizeof size) += header + arrays;
    const auto sum = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
    return text.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  }

  TemporaryFolder folder_;
  CheckpointFolder checkpoints_;
  fs::path older_, newest_;
  std::string content_;  // of the newest
};

TEST_F(CheckpointFiles, ComeBackBitForBit) {
  Checkpoint checkpoint = some_checkpoint(30, 1000);
  std::vector<float>& special = checkpoint.arrays[2].second;
  special.clear();
  // quiet and signalling NaNs with payloads, infinity, -0, the smallest subnormal
  for (const std::uint32_t bits : {0x7fc00000U, 0x7fc12345U, 0xffc00001U, 0x7f800001U, 0xffbfffffU,
                                   0xff800000U, 0x80000000U, 1U})
    special.push_back(std::bit_cast<float>(bits));
  checkpoint.progress["rungs"] = {{"conv1", "simd"}, {"größe", nullptr}};
  checkpoints_.save(30, checkpoint);
  expect_same(loaded().value(), checkpoint);
}

TEST_F(CheckpointFiles, NoArrayIsNeeded) {
  const Checkpoint checkpoint{.identity = {}, .progress = nullptr, .arrays = {}};
  checkpoints_.save(0, checkpoint);
  std::vector<std::string> refused;
  expect_same(checkpoints_.load({}, refused).value(), checkpoint);
}

TEST_F(CheckpointFiles, WithoutAnyThereIsNothingToLoad) {
  std::vector<std::string> refused;
  EXPECT_FALSE(CheckpointFolder(folder_ / "empty").load(identity, refused).has_value());
  EXPECT_TRUE(refused.empty());
}

TEST_F(CheckpointFiles, ATruncatedOneIsRefused) {
  std::uint64_t header = 0;
  std::memcpy(&header, content_.data() + 24, sizeof header);
  for (std::size_t size = 0; size < content_.size(); ++size) {
    write_newest(std::string_view(content_).substr(0, size));
    const std::string reason = refusal();
    EXPECT_TRUE(reason.starts_with(fmt::format("torn: {} ", size))) << reason;
    if (size >= 24 + sizeof header + header) {
      EXPECT_EQ(reason, fmt::format("torn: {} of {} bytes", size, content_.size()));
    }
  }
}

TEST_F(CheckpointFiles, ALongerOneIsRefused) {
  write_newest(content_ + '\0');
  EXPECT_TRUE(says(refusal(), {"damaged", fmt::format("instead of {}", content_.size())}));
}

TEST_F(CheckpointFiles, AnyFlippedBitIsNoticed) {
  for (std::size_t bit = 0; bit < 8 * content_.size(); ++bit) {
    std::string damaged = content_;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_newest(damaged);
    EXPECT_FALSE(refusal().empty()) << "bit " << bit;
  }
}

TEST_F(CheckpointFiles, RandomDamageIsNoticed) {
  Random random(3);
  const auto last = static_cast<std::int64_t>(content_.size()) - 1;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = content_;
    for (std::int64_t count = random.integer(1, 40); count > 0; --count)
      damaged[static_cast<std::size_t>(random.integer(0, last))] =
          static_cast<char>(random.integer(0, 255));
    // parts of the file that another one overwrote
    if (random.integer(0, 1) == 1)
      damaged.replace(static_cast<std::size_t>(random.integer(0, last)), 100,
                      static_cast<std::size_t>(random.integer(0, 200)), '\0');
    if (damaged == content_) continue;
    write_newest(damaged);
    EXPECT_FALSE(refusal().empty());
  }
}

TEST_F(CheckpointFiles, OfAnotherFormatOrVersionAreRefused) {
  write_newest("PK\3\4 this is a file of something else, as long as a checkpoint");
  EXPECT_TRUE(says(refusal(), {"no checkpoint", "'stepladder checkpoint '"}));
  std::string other = content_;
  other.replace(0, 24, "stepladder checkpoint 2\n");
  write_newest(other);
  EXPECT_TRUE(says(refusal(), {"version", "'stepladder checkpoint 2'"}));
  other.replace(22, 1, "\x1b");
  write_newest(other);
  EXPECT_TRUE(says(refusal(), {"'stepladder checkpoint \\x1b'"}));
}

TEST_F(CheckpointFiles, AHeaderOfAnyLengthsIsReadWithoutAllocatingThem) {
  const std::string start =
      R"({"identity":["network: mnist_cnn","batch: 64"],"progress":0,"arrays":)";
  const auto of_length = [&](const std::string& length) {
    return start + R"([{"name":"parameters","length":)" + length + "}]}";
  };
  write_newest(with_header(of_length("1"), "abcd"));
  EXPECT_TRUE(loaded().has_value());  // the file that this test makes is otherwise right

  for (const char* length :
       {"2", "1000000000000", "1152921504606846976", "4611686018427387905", "18446744073709551615",
        "99999999999999999999999", "-1", "1.5", "1e9", "null", "\"1\"", "[1]"}) {
    write_newest(with_header(of_length(length), "abcd"));
    EXPECT_TRUE(refusal().find("wrong") == std::string::npos) << length;
  }
  std::string many = start + "[";  // 16 arrays of 2^60 bytes, 2^64 together, and the 4 in the file
  for (int i = 0; i < 16; ++i) many += R"({"name":"parameters","length":288230376151711744},)";
  many += R"({"name":"parameters","length":1}])";
  for (const std::string& header :
       {many + "}", start + "[]", start + "{}}", start + "[1]}", std::string("[]"), std::string(),
        std::string("null"), std::string(200000, '['), start + std::string(200000, '[')}) {
    write_newest(with_header(header, "abcd"));
    EXPECT_FALSE(refusal().empty()) << header.substr(0, 100);
  }
  std::string deep = start;  // well-formed, and too deep to be copied
  deep.replace(deep.find('0'), 1, std::string(200000, '[') + std::string(200000, ']'));
  write_newest(with_header(deep + "[]}"));
  EXPECT_EQ(refusal(), "damaged: its header is not as it was written");
  std::string absurd = content_;
  absurd.replace(24, 8, 8, '\xff');  // the size of the header
  write_newest(absurd);
  EXPECT_TRUE(says(refusal(), {"header of 18446744073709551615"}));
}

TEST_F(CheckpointFiles, WhatIsNoReadableFileIsRefused) {
  fs::remove(newest_);
  fs::create_directory(newest_);
  EXPECT_EQ(refusal(), "not a file");
  fs::remove(newest_);
  ASSERT_EQ(mkfifo(newest_.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), "not a file");
  fs::remove(newest_);
  fs::create_symlink(folder_ / "nowhere", newest_);
  EXPECT_EQ(refusal(), "cannot be opened: No such file or directory");
  if (geteuid() == 0) return;  // may read every file
  write_newest(content_);
  fs::permissions(newest_, fs::perms::none);
  EXPECT_EQ(refusal(), "cannot be opened: Permission denied");
}

TEST_F(CheckpointFiles, OfAnotherTrainingAreRefusedAndLeftAlone) {
  const auto refusal_of = [&](const std::vector<std::string>& wanted) {
    std::vector<std::string> refused;
    EXPECT_FALSE(checkpoints_.load(wanted, refused).has_value());
    EXPECT_EQ(refused.size(), 2U);
    return refused.empty() ? "" : refused[0];
  };
  const std::string reason = newest_.string() + ": of another training: ";
  EXPECT_EQ(refusal_of({"network: mnist_cnn", "batch: 32"}), reason + "batch: 64, not 32");
  EXPECT_EQ(refusal_of({"network: mlp", "batch: 64"}), reason + "network: mnist_cnn, not mlp");
  EXPECT_EQ(refusal_of({"batch: 64"}), reason + "'network: mnist_cnn', not 'batch: 64'");
  EXPECT_EQ(refusal_of({"network: mnist_cnn"}), reason + "it has the line 'batch: 64'");
  EXPECT_EQ(refusal_of({"network: mnist_cnn", "batch: 64", "shift: 2"}),
            reason + "it has no line 'shift: 2'");

  Checkpoint other = some_checkpoint(1);
  other.identity[1] = "batch: 32";
  EXPECT_TRUE(checkpoints_.files_of(other.identity).empty());
  for (const std::int64_t step : {20, 5, 6, 7}) checkpoints_.save(step, other);
  EXPECT_EQ(checkpoints_.files_of(identity), (std::vector{newest_, older_}));
  EXPECT_EQ(checkpoints_.files_of(other.identity).size(), 2U);
  std::vector<std::string> refused;
  EXPECT_EQ(checkpoints_.load(other.identity, refused).value().progress.at("step"), 1);
  EXPECT_EQ(refused.size(), 2U);
}

TEST_F(CheckpointFiles, AnIdentityMayHoldAnyBytes) {
  Checkpoint checkpoint = some_checkpoint(30);
  checkpoint.identity = {"network: caf\xe9.json", "quote \" and \n"};
  checkpoints_.save(30, checkpoint);
  std::vector<std::string> refused;
  EXPECT_TRUE(checkpoints_.load(checkpoint.identity, refused).has_value());
}

TEST_F(CheckpointFiles, TheNewestTwoAreKept) {
  for (const std::int64_t step : {30, 1000000, 1000001})
    checkpoints_.save(step, some_checkpoint(step));
  const std::vector<fs::path> files = checkpoints_.files_of(identity);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(names_in(folder_ / "checkpoints").size(), 2U);
  EXPECT_TRUE(files[0].filename().string().starts_with("step-1000001-"));
  EXPECT_TRUE(files[1].filename().string().starts_with("step-1000000-"));
  checkpoints_.save(1000001, some_checkpoint(7));  // once more
  EXPECT_EQ(loaded().value().progress.at("step"), 7);
  EXPECT_EQ(checkpoints_.files_of(identity), files);
}

// Else it would push out the whole ones, or a later start would go on from a step that this
// training has not reached.
TEST_F(CheckpointFiles, ATornOneOfALaterStepGoesWithTheNextSave) {
  write_newest(content_.substr(0, 100));
  refusal();
  checkpoints_.save(15, some_checkpoint(15));
  EXPECT_FALSE(fs::exists(newest_));
  EXPECT_TRUE(fs::exists(older_));
  EXPECT_EQ(checkpoints_.files_of(identity).size(), 2U);
}

TEST_F(CheckpointFiles, LeftoversOfKilledWritersGoWithTheNextSave) {
  const std::string leftover = newest_.string() + ".tmp-1234";
  std::ofstream(leftover) << content_.substr(0, 50);
  fs::create_directory(older_.string() + ".tmp-99");
  const fs::path foreign = folder_.path() / "checkpoints/step-000030-00000000.checkpoint.tmp-12";
  const fs::path note = folder_.path() / "checkpoints/notes.txt";
  for (const fs::path& file : {foreign, note}) std::ofstream(file) << "x";
  EXPECT_EQ(loaded().value().progress.at("step"), 20);
  checkpoints_.save(30, some_checkpoint(30));
  EXPECT_EQ(
      names_in(folder_ / "checkpoints"),
      (std::set{foreign.filename().string(), note.filename().string(), newest_.filename().string(),
                checkpoints_.files_of(identity)[0].filename().string()}));
}

TEST_F(CheckpointFiles, AFullDiskLeavesTheOlderOnes) {
  const std::set<std::string> before = names_in(folder_ / "checkpoints");
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{.rlim_cur = 2000, .rlim_max = limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // NOLINT: write() fails instead
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] { checkpoints_.save(30, some_checkpoint(30, 10000)); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(says(error, {"checkpoints/step-000030-", "cannot write: File too large"}));
  EXPECT_EQ(names_in(folder_ / "checkpoints"), before);
  EXPECT_EQ(content_of(newest_), content_);
}

TEST_F(CheckpointFiles, AFolderThatCannotBeUsedIsNamed) {
  for (const fs::path& path : {newest_, newest_ / "below", fs::path("/proc/checkpoints")})
    EXPECT_TRUE(says(error_of([&] { const CheckpointFolder unusable(path); }),
                     {path.string(), "cannot be used as the folder of checkpoints: "}));
  fs::remove_all(folder_ / "checkpoints");
  std::vector<std::string> refused;
  for (const std::string& error : {error_of([&] { checkpoints_.save(1, some_checkpoint(1)); }),
                                   error_of([&] { checkpoints_.load(identity, refused); })})
    EXPECT_TRUE(says(error, {"checkpoints: cannot be read: No such file"}));
}

// A child saves step after step and tells through a pipe which saves are over.
TEST_F(CheckpointFiles, AKilledWriterLosesNothingThatWasSaved) {
  Random random(5);
  std::int64_t last = 20;
  for (int kill_number = 0; kill_number < 40; ++kill_number) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      try {
        for (std::int64_t step = last + 1;; ++step) {
          checkpoints_.save(step, some_checkpoint(step, 50000));
          if (write(ends[1], &step, sizeof step) != sizeof step) break;
        }
      } catch (...) {
      }
      _exit(1);
    }
    close(ends[1]);
    std::int64_t saved = 0;
    const auto read_saved = [&] { return read(ends[0], &saved, sizeof saved) == sizeof saved; };
    if (kill_number % 4 != 0 && read_saved()) last = saved;
    usleep(static_cast<useconds_t>(random.integer(0, 10000)));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    while (read_saved()) last = saved;
    close(ends[0]);

    const Checkpoint newest = loaded().value();
    const auto step = newest.progress.at("step").get<std::int64_t>();
    EXPECT_TRUE(step == last || step == last + 1) << step << " after " << last;
    if (step > 20) expect_same(newest, some_checkpoint(step, 50000));
    last = step;
  }
  checkpoints_.save(last + 1, some_checkpoint(last + 1));
  EXPECT_EQ(names_in(folder_ / "checkpoints").size(), 2U);
}

TEST_F(CheckpointFiles, TheNewestOfANetworkIsReadFromTheFolderOrOneFromItsFile) {
  const std::vector<std::string> network = {"network: mnist_cnn"};
  expect_same(read_checkpoint(folder_ / "checkpoints", network), some_checkpoint(20));
  expect_same(read_checkpoint(older_, network), some_checkpoint(10));
  std::filesystem::resize_file(newest_, 40);
  expect_same(read_checkpoint(folder_ / "checkpoints", network), some_checkpoint(10));
}

TEST_F(CheckpointFiles, WhatHoldsNoCheckpointOfTheNetworkIsNamed) {
  const auto refused = [](const fs::path& path, const std::vector<std::string>& lines) {
    return error_of([&] { read_checkpoint(path, lines); });
  };
  EXPECT_TRUE(says(refused(newest_, {"network: mlp"}),
                   {newest_.string(), "of another network: network: mnist_cnn, not mlp"}));
  EXPECT_TRUE(says(refused(newest_, {"network: mnist_cnn", "layer: fc1"}),
                   {"of another network: it has no line 'layer: fc1'"}));
  EXPECT_TRUE(says(refused(folder_ / "checkpoints", {"network: mlp"}),
                   {newest_.string(), older_.string()}));
  fs::create_directory(folder_ / "empty");
  EXPECT_TRUE(says(refused(folder_ / "empty", {}), {"empty: holds no checkpoint"}));
  std::ofstream(folder_ / "text") << "no checkpoint at all, but long enough to be one";
  EXPECT_TRUE(says(refused(folder_ / "text", {}), {"no checkpoint: it does not begin with"}));
}

TEST_F(CheckpointFiles, AFileOfAnyNameComesBack) {
  write_checkpoint(folder_ / "exported", some_checkpoint(30));
  expect_same(read_checkpoint(folder_ / "exported", identity), some_checkpoint(30));
  EXPECT_TRUE(
      says(error_of([&] { write_checkpoint(folder_ / "none" / "exported", some_checkpoint(30)); }),
           {"exported"}));
}

}  // namespace
}  // namespace stepladder
