// Folders of drawn digits, in the formats of real data, so that the readers of real data read
// them. A folder's generated.json records what was drawn; load() then gives origin "generated".
#pragma once

#include <cstdint>
#include <filesystem>

namespace stepladder::data {

// MNIST's four IDX files, 28x28 in grey. A folder that already holds complete files of the same
// counts, seed and generator version is left as it is. Half of a folder is never taken for whole:
// generated.json says whether the files are complete. Throws std::invalid_argument for counts
// outside 1..1,000,000, and std::runtime_error if the folder cannot be written or holds data
// that was not generated (which is never overwritten).
void write_generated(const std::filesystem::path& directory, int train, int test,
                     std::uint64_t seed);

// The same as CIFAR-10's six binary files, 32x32 in colour; `train` images, 5 or more, are spread
// evenly over five files.
void write_generated_coloured(const std::filesystem::path& directory, int train, int test,
                              std::uint64_t seed);

// Whether the folder holds complete generated files; false if it has no generated.json. Throws
// std::runtime_error if generated.json is malformed or says that the files are not complete.
bool is_generated(const std::filesystem::path& directory);

}  // namespace stepladder::data
