#include "harness/training/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "harness/io/file.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/printable.hpp"

namespace stepladder {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the arrays are written as they are");

constexpr std::string_view magic = "stepladder checkpoint ";
constexpr std::string_view version_line = "stepladder checkpoint 1\n";
constexpr std::string_view extension = ".checkpoint";
constexpr std::size_t kept_files = 2;

using HeaderSize = std::uint64_t;
using Checksum = std::uint32_t;

Checksum checksum(std::string_view bytes, Checksum before = 0) {
  if (bytes.empty()) return before;  // of a null pointer zlib returns 0
  return static_cast<Checksum>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string_view bytes_of(const std::vector<float>& array) {
  return {reinterpret_cast<const char*>(array.data()), array.size() * sizeof(float)};
}

// How the names of the files of this identity end.
std::string ending_of(const std::vector<std::string>& identity) {
  return fmt::format("-{:08x}{}", checksum(json_text(json(identity))), extension);
}

// The step in the name of a checkpoint; nullopt for other files.
std::optional<std::int64_t> step_of(std::string_view name) {
  constexpr std::string_view begin = "step-";
  if (!name.starts_with(begin) || !name.ends_with(extension)) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, error] =
      std::from_chars(name.data() + begin.size(), name.data() + name.size(), step);
  if (error != std::errc()) return std::nullopt;
  return step;
}

// Empty if they are the same: else the first line in which `theirs` differs from `ours`.
std::string difference(const std::vector<std::string>& theirs,
                       const std::vector<std::string>& ours) {
  for (std::size_t i = 0; i < std::max(theirs.size(), ours.size()); ++i) {
    if (i >= theirs.size()) return fmt::format("it has no line '{}'", ours[i]);
    if (i >= ours.size()) return fmt::format("it has the line '{}'", theirs[i]);
    if (theirs[i] == ours[i]) continue;
    const std::size_t key = ours[i].find(": ");
    if (key != std::string::npos && theirs[i].starts_with(ours[i].substr(0, key + 2)))
      return fmt::format("{}, not {}", theirs[i], ours[i].substr(key + 2));
    return fmt::format("'{}', not '{}'", theirs[i], ours[i]);
  }
  return "";
}

constexpr const char* damaged_header = "damaged: its header is not as it was written";

// Why a file is not used.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class File {
 public:
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  explicit File(const std::filesystem::path& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
      const int reason = errno;
      if (descriptor_ >= 0) close(descriptor_);
      throw Refusal(fmt::format("cannot be opened: {}", std::strerror(reason)));
    }
    is_file_ = S_ISREG(status.st_mode);
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_file() const { return is_file_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t left() const { return size_ - position_; }
  Checksum sum() const { return sum_; }  // of what was read

  void read(char* to, std::size_t count) {
    const std::string_view bytes(to, count);
    while (count > 0) {
      const ssize_t got = ::read(descriptor_, to, count);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Refusal(fmt::format("cannot be read: {}", std::strerror(errno)));
      if (got == 0) throw Refusal(fmt::format("torn: {} of {} bytes", position_, size_));
      to += got;
      count -= static_cast<std::size_t>(got);
      position_ += static_cast<std::uint64_t>(got);
    }
    sum_ = checksum(bytes, sum_);
  }
  template <class T>
  T read() {
    T value{};
    read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::string read_text(std::size_t count) {
    std::string text(count, '\0');
    read(text.data(), count);
    return text;
  }

 private:
  int descriptor_;
  bool is_file_ = false;
  std::uint64_t size_ = 0, position_ = 0;
  Checksum sum_ = 0;
};

void read_version(File& file) {
  const std::string line =
      file.read_text(std::min<std::uint64_t>(file.left(), version_line.size()));
  if (line == version_line) return;
  if (version_line.starts_with(line)) throw Refusal(fmt::format("torn: {} bytes", file.size()));
  if (line.starts_with(magic))
    throw Refusal("of another version of the format: it begins with '" +
                  line.substr(0, line.find('\n')) + "'");
  throw Refusal("no checkpoint: it does not begin with '" + std::string(magic) + "'");
}

json read_header(File& file) {
  if (file.left() < sizeof(HeaderSize)) throw Refusal(fmt::format("torn: {} bytes", file.size()));
  const auto size = file.read<HeaderSize>();
  if (size > file.left())
    throw Refusal(fmt::format("torn: {} bytes, and a header of {}", file.size(), size));
  json header = try_parse_json(file.read_text(size));
  if (header.is_discarded()) throw Refusal(damaged_header);
  return header;
}

// The arrays of a header, empty but with their lengths. They, and nothing else, follow in the file:
// what is allocated for them is bounded by its size.
std::vector<std::pair<std::string, std::uint64_t>> read_lengths(const json& header,
                                                                const File& file) {
  std::vector<std::pair<std::string, std::uint64_t>> lengths;
  std::uint64_t expected = file.size() - file.left() + sizeof(Checksum);
  for (const json& array : header.at("arrays")) {
    const json& length = array.at("length");
    constexpr std::uint64_t limit = std::uint64_t{1} << 60;
    if (!length.is_number_unsigned() || length.get<std::uint64_t>() > limit || expected > limit)
      throw Refusal("damaged: an array of " + json_text(length) + " numbers");
    lengths.emplace_back(array.at("name").get<std::string>(), length.get<std::uint64_t>());
    expected += lengths.back().second * sizeof(float);
  }
  if (file.size() < expected)
    throw Refusal(fmt::format("torn: {} of {} bytes", file.size(), expected));
  if (file.size() > expected)
    throw Refusal(fmt::format("damaged: {} bytes instead of {}", file.size(), expected));
  return lengths;
}

using Identity = std::vector<std::string>;

// Refuses the checkpoint of a training that is not this one.
void require_identity(const Identity& found, const Identity& wanted) {
  const auto as_read = parse_json(json_text(json(wanted))).get<Identity>();
  if (const std::string differs = difference(found, as_read); !differs.empty())
    throw Refusal("of another training: " + differs);
}

// Refuses the checkpoint of another network.
void require_lines(const Identity& found, const Identity& wanted) {
  const auto as_read = parse_json(json_text(json(wanted))).get<Identity>();
  const auto kind = [](const std::string& line) { return line.substr(0, line.find(": ") + 2); };
  Identity same_kinds;
  for (const std::string& line : found)
    if (std::any_of(as_read.begin(), as_read.end(),
                    [&](const std::string& one) { return kind(one) == kind(line); }))
      same_kinds.push_back(line);
  if (const std::string differs = difference(same_kinds, as_read); !differs.empty())
    throw Refusal("of another network: " + differs);
}

// Throws Refusal, and json::exception for a damaged header. `require` refuses an identity.
template <class Require>
Checkpoint read_file(const std::filesystem::path& path, const Require& require) {
  File file(path);
  if (!file.is_file()) throw Refusal("not a file");
  read_version(file);
  const json header = read_header(file);
  Checkpoint checkpoint{.identity = header.at("identity").get<std::vector<std::string>>(),
                        .progress = header.at("progress"),
                        .arrays = {}};
  const auto lengths = read_lengths(header, file);
  require(checkpoint.identity);
  for (const auto& [name, length] : lengths) {
    std::vector<float>& array = checkpoint.arrays.emplace_back(name, length).second;
    file.read(reinterpret_cast<char*>(array.data()), length * sizeof(float));
  }
  const Checksum sum = file.sum();
  if (file.read<Checksum>() != sum) throw Refusal("damaged: its checksum is wrong");
  return checkpoint;
}

// The first of the files, which are in a folder, that is whole and that `require` accepts.
template <class Require>
std::optional<Checkpoint> first_of(const std::vector<std::filesystem::path>& files,
                                   const Require& require, std::vector<std::string>& refused) {
  for (const std::filesystem::path& file : files) {
    try {
      return read_file(file, require);
    } catch (const Refusal& refusal) {
      refused.push_back(printable(fmt::format("{}: {}", file.string(), refusal.what())));
    } catch (const json::exception&) {
      refused.push_back(printable(fmt::format("{}: {}", file.string(), damaged_header)));
    }
  }
  return std::nullopt;
}

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error)
    throw std::runtime_error(
        fmt::format("{}: cannot be read: {}", directory.string(), error.message()));
  return names;
}

// The checkpoints whose names end so, newest first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory,
                                                  std::string_view ending = extension) {
  std::vector<std::string> names = names_in(directory);
  std::erase_if(names, [&](const std::string& name) {
    return !step_of(name).has_value() || !name.ends_with(ending);
  });
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(step_of(a), a) > std::pair(step_of(b), b);
  });
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) files.push_back(directory / name);
  return files;
}

}  // namespace

Checkpoint read_checkpoint(const std::filesystem::path& file_or_folder,
                           const std::vector<std::string>& lines) {
  const bool is_folder = std::filesystem::is_directory(file_or_folder);
  std::vector<std::string> refused;
  std::optional<Checkpoint> found = first_of(
      is_folder ? checkpoints_in(file_or_folder) : std::vector{file_or_folder},
      [&](const Identity& identity) { require_lines(identity, lines); }, refused);
  if (found) return *std::move(found);
  throw std::runtime_error(refused.empty() ? file_or_folder.string() + ": holds no checkpoint"
                                           : fmt::format("{}", fmt::join(refused, "; ")));
}

void write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  json header = {{"identity", checkpoint.identity},
                 {"progress", checkpoint.progress},
                 {"arrays", json::array()}};
  for (const auto& [name, array] : checkpoint.arrays)
    header["arrays"].push_back({{"name", name}, {"length", array.size()}});
  const std::string text = json_text(header);
  const HeaderSize size = text.size();
  std::vector<std::string_view> parts = {version_line, bytes_of(size), text};
  for (const auto& [name, array] : checkpoint.arrays) parts.push_back(bytes_of(array));
  Checksum sum = 0;
  for (const std::string_view part : parts) sum = checksum(part, sum);
  parts.push_back(bytes_of(sum));
  replace_file(file, parts);
}

CheckpointFolder::CheckpointFolder(std::filesystem::path directory)
    : directory_(std::move(directory)) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (!error && access(directory_.c_str(), R_OK | W_OK | X_OK) != 0)
    error.assign(errno, std::generic_category());
  if (!error && !std::filesystem::is_directory(directory_, error) && !error)
    error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    throw std::runtime_error(fmt::format("{}: cannot be used as the folder of checkpoints: {}",
                                         directory_.string(), error.message()));
}

std::vector<std::filesystem::path> CheckpointFolder::files_of(
    const std::vector<std::string>& identity) const {
  return checkpoints_in(directory_, ending_of(identity));
}

void CheckpointFolder::save(std::int64_t step, const Checkpoint& checkpoint) const {
  const std::string ending = ending_of(checkpoint.identity);
  std::error_code ignored;  // what cannot be removed now may be removed with the next save
  for (const std::string& name : names_in(directory_))
    if (name.find(ending + ".tmp-") != std::string::npos)
      std::filesystem::remove(directory_ / name, ignored);
  write_checkpoint(directory_ / fmt::format("step-{:06}{}", step, ending), checkpoint);

  std::size_t kept = 0;
  for (const std::filesystem::path& file : files_of(checkpoint.identity))
    if (*step_of(file.filename().string()) > step || ++kept > kept_files)
      std::filesystem::remove(file, ignored);
}

std::optional<Checkpoint> CheckpointFolder::load(const std::vector<std::string>& identity,
                                                 std::vector<std::string>& refused) const {
  return first_of(
      checkpoints_in(directory_), [&](const Identity& found) { require_identity(found, identity); },
      refused);
}

}  // namespace stepladder
