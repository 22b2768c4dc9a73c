// std::bad_alloc that says what was asked for.
#pragma once

#include <cstddef>
#include <cstdio>
#include <new>

namespace stepladder {

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes) {
    constexpr double mib = 1U << 20U;
    std::snprintf(
        text_, sizeof text_,
        "memory ran out: a block of %.1f MiB was asked for; see the limits of the process "
        "(ulimit -v), of its container and of the machine",
        static_cast<double>(bytes) / mib);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[192];
};

}  // namespace stepladder
