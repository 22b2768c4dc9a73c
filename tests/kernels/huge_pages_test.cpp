#include "kernels/all_reduce/mpi/huge_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/aligned.hpp"

namespace stepladder::all_reduce {
namespace {

// A file in memory, mapped with pages of 4 KiB.
class SharedFile {
 public:
  static constexpr std::size_t bytes = 3 * huge_page;
  SharedFile() {
    const int file = memfd_create("stepladder", 0);
    if (ftruncate(file, bytes) == 0)
      memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory_ != MAP_FAILED) std::memset(memory_, 0, bytes);
  }
  ~SharedFile() {
    if (memory_ != MAP_FAILED) munmap(memory_, bytes);
  }
  std::byte* begin() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = MAP_FAILED;
};

TEST(HugePages, BeginAtMultiplesOfTheOffsetInTheFile) {
  const SharedFile file;
  ASSERT_NE(static_cast<void*>(file.begin()), MAP_FAILED);
  EXPECT_EQ(bytes_to_huge_page(file.begin()), 0U);
  EXPECT_EQ(bytes_to_huge_page(file.begin() + 4096), huge_page - 4096);
  EXPECT_EQ(bytes_to_huge_page(file.begin() + 2 * huge_page - 1), 1U);
}

TEST(HugePages, TheSecondMappingShowsTheSameMemory) {
  const SharedFile file;
  ASSERT_NE(static_cast<void*>(file.begin()), MAP_FAILED);
  std::byte* const first = file.begin() + huge_page;
  first[17] = std::byte{5};
  std::byte* const second = map_in_huge_pages(first, 2 * huge_page);
  if (second == nullptr) GTEST_SKIP() << "this system has no huge pages for shared memory";
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % huge_page, 0U);
  EXPECT_NE(second, first);
  EXPECT_EQ(second[17], std::byte{5});
  second[2 * huge_page - 1] = std::byte{9};
  EXPECT_EQ(first[2 * huge_page - 1], std::byte{9});
  munmap(second, 2 * huge_page);
  EXPECT_EQ(first[17], std::byte{5});
}

TEST(HugePages, AreNotForPrivateMemory) {
  const auto memory = aligned_array<std::byte>(2 * huge_page);
  std::memset(memory.get(), 0, 2 * huge_page);
  EXPECT_EQ(bytes_to_huge_page(memory.get() + 64), 0U);
  EXPECT_EQ(map_in_huge_pages(memory.get(), 2 * huge_page), nullptr);
}

}  // namespace
}  // namespace stepladder::all_reduce
