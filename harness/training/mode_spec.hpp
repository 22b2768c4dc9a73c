// The list of modes of training, and a mode as the user writes it: "ssp,bound=2".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepladder {

class Mode;
struct Forecast;
struct TrainingSetup;

// An option of a mode, as in "ssp,bound=2". A value that is a number is 0 or more.
struct ModeOption {
  const char* name;
  const char* value;  // by default
  const char* meaning;
};

// "ssp,bound=2": the name of a mode and values of its options. A hybrid,
// "token_ring/parameter_server", has the name "hybrid" and both names as options.
class ModeSpec {
 public:
  // Throws UnknownName if there is no such mode or option, and std::runtime_error for a bad value.
  explicit ModeSpec(const std::string& text);
  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }
  const std::string& value(const char* option) const { return values_.at(option); }
  std::int64_t integer(const char* option, std::int64_t least = 0) const;
  float number(const char* option) const;
  bool flag(const char* option) const;  // yes or no

 private:
  [[noreturn]] void fail(const char* option, const std::string& expected) const;

  std::string text_, name_;
  std::map<std::string, std::string> values_;
};

struct ModeInfo {
  enum class Replicas { one, threads, ranks };
  const char* name;
  const char* idea;  // one sentence
  Replicas replicas;
  bool synchronous;  // all replicas have the same weights after every update, as one process has
  bool divides_batches;  // among the replicas
  std::vector<ModeOption> options = {};
};

using ModeFactory = std::unique_ptr<Mode> (*)(const TrainingSetup&, const ModeSpec&);
// A mode cannot run as it is asked to; what() says why.
struct CannotRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Predicts one update of the weights (forecast.hpp). Throws CannotRun.
using ModeForecast = void (*)(Forecast&);

struct ModeEntry {
  ModeInfo info;
  ModeFactory make;
  ModeForecast forecast;
};
const std::vector<ModeEntry>& modes();  // by name
const ModeEntry& mode_named(const std::string& name);

struct ModeRegistration {
  ModeRegistration(ModeInfo info, ModeFactory make, ModeForecast forecast);
};

}  // namespace stepladder
