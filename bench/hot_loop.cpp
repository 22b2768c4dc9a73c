#include "bench/hot_loop.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "harness/io/shell.hpp"

namespace stepladder {
namespace {

constexpr long sample_interval_ns = 200'000;
constexpr std::size_t most_samples = 50'000, longest_loop = 400;

std::array<std::uint64_t, most_samples> taken;  // what the signal handler may write to
std::atomic<std::size_t> taken_count{0};

void take_sample(int, siginfo_t*, void* context) {
  const std::size_t at = taken_count.load(std::memory_order_relaxed);
  if (at == most_samples) return;
#if defined(__x86_64__)
  taken[at] = static_cast<std::uint64_t>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#else
  taken[at] = static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#endif
  taken_count.store(at + 1, std::memory_order_relaxed);
}

// Sends SIGPROF to this thread while it lives.
class Timer {
 public:
  Timer() {
    struct sigaction action {};
    action.sa_sigaction = take_sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, &before_);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = static_cast<int>(syscall(SYS_gettid));
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
      throw std::runtime_error("the system gives no timer");
    const itimerspec often{{0, sample_interval_ns}, {0, sample_interval_ns}};
    timer_settime(timer_, 0, &often, nullptr);
  }
  ~Timer() {
    timer_delete(timer_);
    sigaction(SIGPROF, &before_, nullptr);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  struct sigaction before_ {};
  timer_t timer_{};
};

// What a command prints. Throws if it fails.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) throw std::runtime_error("no process can be started");
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), got);
  if (pclose(pipe) != 0)
    throw std::runtime_error(fmt::format("{} failed; Debian's package binutils has it",
                                         command.substr(0, command.find(' '))));
  return text;
}

// Where an address of this process lies in a file.
struct Location {
  std::string file;
  std::uint64_t bias = 0;  // address in this process minus address in the file
};
Location location_of(std::uint64_t address) {
  Dl_info info{};
  link_map* map = nullptr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) == 0 ||
      map == nullptr)
    return {};
  const bool is_program = map->l_name[0] == '\0';
  return {is_program ? std::filesystem::read_symlink("/proc/self/exe").string() : map->l_name,
          map->l_addr};
}

struct Function {
  std::string name;
  std::uint64_t begin = 0, end = 0;
};

// The functions of a file by their addresses. A library that was stripped has its exported ones.
std::vector<Function> functions_of(const std::string& file) {
  for (const char* symbols : {"", "-D "}) {
    std::vector<Function> all;
    std::istringstream lines(
        output_of(fmt::format("nm -n --defined-only {}{}", symbols, shell_quoted(file))));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string address, type, name;
      if (!(words >> address >> type >> name)) continue;
      const std::uint64_t begin = std::stoull(address, nullptr, 16);
      if (!all.empty() && all.back().end == 0 && begin > all.back().begin) all.back().end = begin;
      if (type.find_first_of("tTwWiu") == 0) all.push_back({name, begin, 0});
    }
    std::erase_if(all, [](const Function& f) { return f.end == 0; });
    if (!all.empty()) return all;
  }
  throw std::runtime_error(file + " has no symbols");
}

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

struct Line {
  std::uint64_t address;
  std::string text;
};

std::vector<Line> lines_of(const std::string& listing) {
  static const std::regex pattern(R"(^\s*([0-9a-f]+):\s+(.*?)\s*$)");
  static const std::regex symbol(R"(\s*(#.*|<[^>]*>)$)"), spaces(R"(\s+)");
  std::vector<Line> lines;
  std::istringstream stream(listing);
  std::smatch match;
  for (std::string line; std::getline(stream, line);)
    if (std::regex_match(line, match, pattern))
      lines.push_back(
          {std::stoull(match[1], nullptr, 16),
           std::regex_replace(std::regex_replace(match[2].str(), spaces, " "), symbol, "")});
  return lines;
}

// "jne 4010a0" -> 0x4010a0; 0 for anything else
std::uint64_t jump_target(const std::string& text) {
  static const std::regex jump(R"(^j\w+\s+(?:0x)?([0-9a-f]+)$)");
  std::smatch match;
  return std::regex_match(text, match, jump) ? std::stoull(match[1], nullptr, 16) : 0;
}

bool starts_with_any(const std::string& text, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* beginning) { return text.starts_with(beginning); });
}

// An instruction by its parts: vfmadd231ps zmm1, zmm2, [rax]
struct Parsed {
  std::string name;  // without the v of AVX
  std::string operands;
  bool is_single = false;  // one element of a vector register
  bool writes_memory = false, reads_memory = false, broadcasts = false;
  bool on_stack = false;  // the place in memory, as of registers that are spilled
  std::string count;      // "16 floats", "a float"
};

Parsed parsed(const std::string& instruction) {
  Parsed p;
  const std::size_t space = instruction.find(' ');
  p.name = instruction.substr(0, space);
  if (space != std::string::npos) p.operands = instruction.substr(space + 1);
  if (p.name.size() > 3 && p.name[0] == 'v') p.name.erase(0, 1);
  const std::size_t bracket = p.operands.find('[');
  p.writes_memory = bracket < p.operands.find(',');
  p.reads_memory = bracket != std::string::npos && !p.writes_memory;
  p.on_stack =
      p.operands.find("[rsp") != std::string::npos || p.operands.find("[rbp-") != std::string::npos;
  p.broadcasts =
      p.operands.find("{1to") != std::string::npos || p.operands.find("BCST") != std::string::npos;
  const int bytes = p.operands.find("zmm") != std::string::npos   ? 64
                    : p.operands.find("ymm") != std::string::npos ? 32
                                                                  : 16;
  const bool is_double =
      p.name.ends_with("d") && starts_with_any(p.name, {"mov", "f", "add", "sub", "mul", "div",
                                                        "max", "min", "sqrt", "cvt"});
  const std::string element = is_double ? "double" : "float";
  p.is_single = p.name.ends_with("ss") || p.name.ends_with("sd");
  p.count =
      p.is_single ? "a " + element : fmt::format("{} {}s", bytes / (is_double ? 8 : 4), element);
  return p;
}

// What an instruction does, and what it counts as in the summary.
std::pair<std::string, std::string> meaning_and_kind(const std::string& instruction) {
  const Parsed p = parsed(instruction);
  const std::string& n = p.name;
  const std::string from =
      p.broadcasts     ? ", one factor loaded into all lanes"
      : p.reads_memory ? p.on_stack ? ", one operand from the stack" : ", one operand from memory"
                       : "";
  const bool is_vector = p.operands.find("mm") != std::string::npos;
  if (starts_with_any(n, {"fmadd", "fnmadd", "fmsub", "fnmsub"})) {
    const std::string verb = starts_with_any(n, {"fn"}) ? "subtracts" : "adds";
    return {fmt::format("multiplies and {}, {}{}", verb, p.count, from),
            fmt::format("multiply-adds of {}", p.count)};
  }
  if (starts_with_any(n, {"movnt"})) return {"stores " + p.count + " past the caches", "stores"};
  if (starts_with_any(n, {"broadcast", "pbroadcast"}))
    return {p.reads_memory ? "loads one element into all lanes" : "copies one element to all lanes",
            p.reads_memory ? "loads" : "moves between lanes"};
  if (is_vector && starts_with_any(n, {"mov", "lddqu"}) &&
      !starts_with_any(n, {"movmsk", "movsh", "movsl", "movhl", "movlh", "movd", "movq"})) {
    const char* spilled = "the stack: a spilled register, or a local array";
    if (p.writes_memory && p.on_stack)
      return {fmt::format("stores {} on {}", p.count, spilled), "stores on the stack"};
    if (p.reads_memory && p.on_stack)
      return {fmt::format("loads {} from {}", p.count, spilled), "loads from the stack"};
    if (p.writes_memory) return {"stores " + p.count, "stores"};
    if (p.reads_memory) return {"loads " + p.count, "loads"};
    return {"copies a register", "copies"};
  }
  if (is_vector) {
    for (const auto& [beginning, verb] : {std::pair{"mul", "multiplies"},
                                          {"add", "adds"},
                                          {"sub", "subtracts"},
                                          {"div", "divides"},
                                          {"max", "takes the larger of"},
                                          {"min", "takes the smaller of"},
                                          {"sqrt", "takes the roots of"},
                                          {"rsqrt", "estimates the inverse roots of"},
                                          {"rcp", "estimates the inverses of"},
                                          {"cmp", "compares"},
                                          {"ucomis", "compares"},
                                          {"comis", "compares"}})
      if (n.starts_with(beginning))
        return {fmt::format("{} {}{}", verb, p.count, from),
                fmt::format("other arithmetic of {}", p.count)};
    if (starts_with_any(n, {"xor", "pxor"}))
      return {"sets a register to 0, or flips bits", "other"};
    if (starts_with_any(n, {"and", "or", "pand", "por", "ptern"}))
      return {"combines bits", "other"};
    if (starts_with_any(n, {"blend", "pblend"})) return {"selects by a mask", "selections"};
    if (starts_with_any(
            n, {"perm", "shuf", "unpck", "insert", "extract", "pshuf", "punpck", "movsh", "movsl",
                "movhl", "movlh", "valign", "palign", "expand", "compress"}))
      return {"moves elements between lanes", "moves between lanes"};
    if (starts_with_any(n, {"gather"})) return {"loads elements from many places", "loads"};
    if (starts_with_any(n, {"scatter"})) return {"stores elements to many places", "stores"};
    if (starts_with_any(n, {"cvt"})) return {"converts numbers", "conversions"};
    if (starts_with_any(n, {"padd", "psub", "pmul", "pcmp", "pmin", "pmax", "psll", "psrl"}))
      return {"computes integers in lanes", "integer arithmetic"};
  }
  if (n.starts_with("prefetch")) return {"asks for a cache line", "prefetches"};
  if (n.starts_with("lock") || n.starts_with("xchg")) return {"changes memory atomically", "other"};
  if (n == "jmp") return {"continues elsewhere", "branches"};
  if (n.starts_with("j")) return {"branches", "branches"};
  if (n.starts_with("call")) return {"calls a function", "calls"};
  if (n.starts_with("lea")) return {"computes an address", "addresses and counters"};
  if (starts_with_any(n, {"nop", "data16", "cs"})) return {"aligns the code", "padding"};
  if (starts_with_any(n, {"cmp", "test"})) return {"compares counters", "addresses and counters"};
  if (starts_with_any(n, {"cmov", "set"})) return {"selects without a branch", "selections"};
  if (starts_with_any(n, {"mov"})) {
    if (p.writes_memory) return {"stores an integer", "stores"};
    if (p.reads_memory) return {"loads an integer", "loads"};
    return {"copies an integer", "copies"};
  }
  if (starts_with_any(n, {"add", "sub", "inc", "dec", "imul", "shl", "sal", "sar", "shr", "neg",
                          "and", "or", "xor", "not"}))
    return {"advances an address or a counter", "addresses and counters"};
  return {"", "other"};
}

// The innermost of the loops in a function that holds half of its samples, or most of them if none
// does. `listing`: of objdump -d -M intel --no-show-raw-insn; `samples`: addresses in it.
HotLoop hot_loop_of(const std::string& listing, const std::vector<std::uint64_t>& samples) {
  const std::vector<Line> lines = lines_of(listing);
  std::map<std::uint64_t, std::size_t> index;
  for (std::size_t i = 0; i < lines.size(); ++i) index[lines[i].address] = i;
  std::vector<int> sum(lines.size() + 1, 0);  // of the samples before a line
  for (const std::uint64_t sample : samples)
    if (const auto found = index.find(sample); found != index.end()) ++sum[found->second + 1];
  for (std::size_t i = 0; i < lines.size(); ++i) sum[i + 1] += sum[i];

  struct Range {
    std::size_t first, last;  // from the target to the jump
  };
  std::vector<Range> loops;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto target = index.find(jump_target(lines[i].text));
    if (target != index.end() && target->second <= i && i - target->second < longest_loop)
      loops.push_back({target->second, i});
  }
  const auto held = [&](const Range& r) { return sum[r.last + 1] - sum[r.first]; };
  const Range* best = nullptr;
  for (const Range& loop : loops) {
    const bool half = 2 * held(loop) >= sum.back();
    const bool best_half = best != nullptr && 2 * held(*best) >= sum.back();
    if (best == nullptr || (half && !best_half) ||
        (half && loop.last - loop.first < best->last - best->first) ||
        (!half && !best_half && held(loop) > held(*best)))
      best = &loop;
  }
  if (best == nullptr || held(*best) == 0)
    throw std::runtime_error("its time is spent in no loop of one function");
  HotLoop found;
  found.samples = static_cast<int>(samples.size());
  found.share = static_cast<double>(held(*best)) / static_cast<double>(samples.size());
  for (std::size_t i = best->first; i <= best->last; ++i)
    found.instructions.push_back({lines[i].text, static_cast<double>(sum[i + 1] - sum[i]) /
                                                     static_cast<double>(samples.size())});
  return found;
}

}  // namespace

HotLoop find_hot_loop(const std::function<void()>& run, double seconds) {
#if !defined(__x86_64__)
  throw std::runtime_error("only instructions of x86-64 are explained");
#endif
  run();
  taken_count = 0;
  {
    const Timer timer;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    do run();
    while (std::chrono::steady_clock::now() < end);
  }
  std::map<std::string, std::vector<std::uint64_t>> by_file;  // addresses in the file
  for (std::size_t i = 0; i < taken_count; ++i) {
    const Location found = location_of(taken[i]);
    by_file[found.file].push_back(taken[i] - found.bias);
  }
  const auto most = std::max_element(by_file.begin(), by_file.end(), [](auto& a, auto& b) {
    return a.second.size() < b.second.size();
  });
  if (most == by_file.end()) throw std::runtime_error("it was never stopped");
  if (most->first.empty())
    throw std::runtime_error("its code is in no file: it was compiled at run time");

  const std::vector<Function> functions = functions_of(most->first);
  std::vector<int> hits(functions.size(), 0);
  for (const std::uint64_t sample : most->second) {
    const auto after = std::upper_bound(
        functions.begin(), functions.end(), sample,
        [](std::uint64_t address, const Function& f) { return address < f.begin; });
    if (after != functions.begin() && sample < std::prev(after)->end)
      ++hits[static_cast<std::size_t>(after - functions.begin()) - 1];
  }
  const Function& hottest = functions[static_cast<std::size_t>(
      std::max_element(hits.begin(), hits.end()) - hits.begin())];
  const std::string listing = output_of(fmt::format(
      "objdump --disassemble --no-show-raw-insn -M intel --start-address={} --stop-address={} {}",
      hottest.begin, hottest.end, shell_quoted(most->first)));
  HotLoop loop = hot_loop_of(listing, most->second);
  const double in_file = static_cast<double>(most->second.size());
  const double whole = static_cast<double>(taken_count.load());
  loop.samples = static_cast<int>(taken_count);
  loop.share *= in_file / whole;
  for (HotLoop::Instruction& instruction : loop.instructions) instruction.share *= in_file / whole;
  loop.function = demangled(hottest.name);
  loop.file = most->first;
  return loop;
}

void print_hot_loop(const HotLoop& loop) {
  std::size_t width = 0;
  for (const HotLoop::Instruction& i : loop.instructions) width = std::max(width, i.text.size());
  width = std::min<std::size_t>(width, 56);
  std::map<std::string, int> kinds;
  fmt::print("{:>6}  {:<{}}  {}\n", "time", "instruction", width, "what it does");
  for (const HotLoop::Instruction& instruction : loop.instructions) {
    auto [meaning, kind] = meaning_and_kind(instruction.text);
    if (&instruction == &loop.instructions.back()) meaning = "repeats the loop";
    ++kinds[kind];
    const std::string share =
        instruction.share < 0.005 ? "" : fmt::format("{:.0f} %", 100 * instruction.share);
    fmt::print("{:>6}  {:<{}}  {}\n", share, instruction.text, width, meaning);
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [kind, count] : kinds) sorted.emplace_back(-count, kind);
  std::sort(sorted.begin(), sorted.end());
  std::string summary;
  for (const auto& [count, kind] : sorted)
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", -count, kind);
  fmt::print("{} instructions: {}\n", loop.instructions.size(), summary);
}

}  // namespace stepladder
