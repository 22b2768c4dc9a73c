// The known names that are most similar to an unknown one.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// Number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`,
// ignoring case (optimal string alignment distance).
int edit_distance(std::string_view a, std::string_view b);

// The `limit` candidates most similar to `name`, nearest first. A candidate that contains `name`,
// or is contained in it, has distance 1 at most: `conv` finds `convolution`.
std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates,
                                       std::size_t limit = 3);

// An unknown name in the user's input. The program prints the nearest ones and exits with status 2.
class UnknownName : public std::runtime_error {
 public:
  // kind: "network", "suite", "variant".
  UnknownName(const std::string& kind, const std::string& name,
              std::span<const std::string> candidates);

  const std::string& kind() const { return kind_; }
  const std::string& name() const { return name_; }
  const std::vector<std::string>& suggestions() const { return suggestions_; }

 private:
  UnknownName(std::vector<std::string> suggestions, const std::string& kind,
              const std::string& name);

  std::string kind_;
  std::string name_;
  std::vector<std::string> suggestions_;
};

}  // namespace stepladder
