// Huge pages for memory that processes share. An MPI library maps a file in /dev/shm in pages of
// 4 KiB, and by default Linux forms huge pages of such files on request only.
#pragma once

#include <cstddef>

namespace stepladder::all_reduce {

// Bytes from `memory` to the next place at which a huge page can begin: where the offset in the
// mapped file is a multiple of huge_page. 0 if no shared file is mapped there.
std::size_t bytes_to_huge_page(const std::byte* memory);

// A second mapping of [memory, memory + bytes), in huge pages. A huge page can begin at `memory`,
// and `bytes` is a multiple of huge_page. nullptr where the system has no huge pages for that
// memory (Linux before 6.1; a file on disk; memory that is not shared). munmap ends it.
std::byte* map_in_huge_pages(std::byte* memory, std::size_t bytes);

}  // namespace stepladder::all_reduce
