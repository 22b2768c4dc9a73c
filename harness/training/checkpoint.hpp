// Checkpoint files: all that a training needs to go on from a step after it was killed.
//
// A file is a line with the format's version, the size of the header in 8 bytes, the header (JSON:
// identity, progress, names and lengths of the arrays), the arrays as little-endian fp32, and the
// CRC-32 of everything before it. Its name has the step and a checksum of the identity: trainings
// that share a folder leave each other's files alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepladder {

struct Checkpoint {
  // What a training must share to go on from it: "network: mnist_cnn", "batch: 64".
  std::vector<std::string> identity;
  nlohmann::json progress;  // step, samples, seconds, …; kept as it is, except that JSON has no NaN
  std::vector<std::pair<std::string, std::vector<float>>> arrays;  // "parameters", "state1", …
};

// Of a file, or of a folder the newest that can be read. Its identity has these lines, and no other
// ones of their kinds ("network: ", "layer: "). Throws std::runtime_error, with the reason of each
// file that was refused.
Checkpoint read_checkpoint(const std::filesystem::path& file_or_folder,
                           const std::vector<std::string>& lines);
// Replaces the file. Throws std::runtime_error that names it.
void write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// One process at a time may save into a folder. Errors are std::runtime_error and name the file.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path directory);  // makes it; throws if not writable

  // When it returns, the file is whole on the disk under its final name, and of the other files of
  // this identity only the newest of an earlier step is left. Before it writes, it removes what
  // killed writers left. If it throws, all checkpoints are as they were before.
  void save(std::int64_t step, const Checkpoint& checkpoint) const;

  // The newest checkpoint that is whole and of this identity. `refused` gets a line for each newer
  // one, ".../step-000120-1a2b3c4d.checkpoint: torn: 4096 of 6653480 bytes".
  std::optional<Checkpoint> load(const std::vector<std::string>& identity,
                                 std::vector<std::string>& refused) const;

  // The files of this identity, newest first, whole or not. A training that starts from step 0
  // removes them when it saves.
  std::vector<std::filesystem::path> files_of(const std::vector<std::string>& identity) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace stepladder
