#include "harness/io/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "harness/io/printable.hpp"

namespace stepladder {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

int distance_of(std::string_view name, std::string_view candidate) {
  const std::string a = lower_case(name);
  const std::string b = lower_case(candidate);
  const int distance = edit_distance(a, b);
  const bool contained = b.find(a) != std::string::npos || a.find(b) != std::string::npos;
  return contained ? std::min(distance, 1) : distance;
}

std::string message(const std::string& kind, const std::string& name,
                    const std::vector<std::string>& suggestions) {
  if (suggestions.empty())
    return printable(fmt::format("unknown {} '{}': there is none", kind, name));
  return printable(
      fmt::format("unknown {} '{}'; nearest: {}", kind, name, fmt::join(suggestions, ", ")));
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::string s = lower_case(a);
  const std::string t = lower_case(b);
  // Row i of the table holds the distances from s[0, i) to every t[0, j).
  std::vector<int> before_previous, previous(t.size() + 1), current(t.size() + 1);
  for (std::size_t j = 0; j <= t.size(); ++j) previous[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= s.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= t.size(); ++j) {
      const int substitution = previous[j - 1] + (s[i - 1] == t[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && s[i - 1] == t[j - 2] && s[i - 2] == t[j - 1]) {
        current[j] = std::min(current[j], before_previous[j - 2] + 1);
      }
    }
    before_previous = previous;
    std::swap(previous, current);
  }
  return previous[t.size()];
}

std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates, std::size_t limit) {
  std::vector<std::pair<int, std::string>> ranked;
  ranked.reserve(candidates.size());
  for (const std::string& candidate : candidates) {
    ranked.emplace_back(distance_of(name, candidate), candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());

  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < std::min(limit, ranked.size()); ++i) {
    nearest.push_back(std::move(ranked[i].second));
  }
  return nearest;
}

UnknownName::UnknownName(const std::string& kind, const std::string& name,
                         std::span<const std::string> candidates)
    : UnknownName(nearest_names(name, candidates), kind, name) {}

UnknownName::UnknownName(std::vector<std::string> suggestions, const std::string& kind,
                         const std::string& name)
    : std::runtime_error(message(kind, name, suggestions)),
      kind_(kind),
      name_(name),
      suggestions_(std::move(suggestions)) {}

}  // namespace stepladder
