#include "harness/measure/machine.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "harness/io/file.hpp"
#include "harness/measure/counters.hpp"
#include "harness/measure/energy.hpp"
#include "harness/measure/gpu_monitor.hpp"
#include "harness/measure/memory_limits.hpp"
#include "harness/problem/threads.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "kernels/common/device.hpp"
#include "kernels/common/opencl/devices.hpp"

#ifdef STEPLADDER_HAVE_MPI
#include <mpi.h>
#endif
#ifdef STEPLADDER_HAVE_ONEDNN
#include <dnnl.hpp>
#endif

namespace stepladder {
namespace {

// Text after "key : " in the first such line of a file.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) {
      const std::size_t from = line.find_first_not_of(" \t:", key.size());
      if (from != std::string::npos) return line.substr(from);
    }
  return {};
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// The output of a command without its last newline; empty when it fails.
std::string output_of(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>/dev/null").c_str(), "r"),
                                             pclose);
  if (!pipe) return {};
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get()))
    text += static_cast<char>(c);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

struct Commit {
  std::string hash = "unknown";
  nlohmann::json is_dirty = nullptr;  // null where git could not be asked
};

// Of the program: from the file that STEPLADDER_COMMIT_FILE names, for one that was built
// elsewhere, otherwise from git, otherwise from the file of the bundle. Files have a line "HASH" or
// "HASH dirty".
Commit commit_of(const std::filesystem::path& sources) {
  const char* named = std::getenv("STEPLADDER_COMMIT_FILE");
  std::error_code error;
  if (named == nullptr && std::filesystem::exists(sources / ".git", error)) {
    const std::string git = fmt::format("git -C '{}' ", sources.string());
    if (const std::string hash = output_of(git + "rev-parse --short=12 HEAD"); !hash.empty()) {
      const std::string changed =
          output_of(git + "status --porcelain --untracked-files=no && echo end");
      return {hash, changed.ends_with("end") ? nlohmann::json(changed != "end") : nullptr};
    }
  }
  std::ifstream in(named != nullptr ? named : sources / "build" / "gpu-bundle" / "commit");
  std::string hash, state;
  if (!(in >> hash)) return {};
  in >> state;
  return {hash.substr(0, 12), state == "dirty"};
}

nlohmann::json libraries() {
  nlohmann::json all = {{"google_benchmark", "1.7 or newer"},
                        {"xsimd", fmt::format("{}.{}.{}", XSIMD_VERSION_MAJOR, XSIMD_VERSION_MINOR,
                                              XSIMD_VERSION_PATCH)},
                        {"fmt", fmt::format("{}", FMT_VERSION)},
                        {"zlib", zlibVersion()}};
#ifdef STEPLADDER_HAVE_MPI
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  all["mpi"] = version;  // `length` may count the final zero
#endif
#ifdef STEPLADDER_HAVE_ONEDNN
  const dnnl_version_t* onednn = dnnl_version();
  all["onednn"] = fmt::format("{}.{}.{}", onednn->major, onednn->minor, onednn->patch);
#endif
  return all;
}

// The one on which the OpenCL rungs run is "chosen".
nlohmann::json opencl_devices() {
  nlohmann::json all = nlohmann::json::array();
  for (const opencl::Description& device : opencl::devices())
    all.push_back({{"platform", device.platform},
                   {"device", device.name},
                   {"version", device.version},
                   {"driver", device.driver},
                   {"compute_units", device.compute_units},
                   {"chosen", &device == opencl::chosen_device()}});
  return all;
}

struct Models {
  int family, first, last;
  const char* name;
  bool has_amx = false;
};
constexpr Models amd_models[] = {
    {23, 0x00, 0x2f, "Zen"},   {23, 0x30, 0xff, "Zen 2"}, {25, 0x00, 0x0f, "Zen 3"},
    {25, 0x10, 0x1f, "Zen 4"}, {25, 0x20, 0x5f, "Zen 3"}, {25, 0x60, 0xaf, "Zen 4"},
    {26, 0x00, 0x7f, "Zen 5"},
};
constexpr Models intel_models[] = {
    {6, 0x3f, 0x3f, "Haswell"},
    {6, 0x4e, 0x4e, "Skylake"},
    {6, 0x4f, 0x4f, "Broadwell"},
    {6, 0x55, 0x55, "Skylake or Cascade Lake"},
    {6, 0x5e, 0x5e, "Skylake"},
    {6, 0x6a, 0x6c, "Ice Lake"},
    {6, 0x7d, 0x7e, "Ice Lake"},
    {6, 0x8c, 0x8d, "Tiger Lake"},
    {6, 0x8e, 0x8e, "Kaby Lake"},
    {6, 0x8f, 0x8f, "Sapphire Rapids", true},
    {6, 0x97, 0x97, "Alder Lake"},
    {6, 0x9a, 0x9a, "Alder Lake"},
    {6, 0x9e, 0x9e, "Kaby Lake"},
    {6, 0xa5, 0xa6, "Comet Lake"},
    {6, 0xa7, 0xa7, "Rocket Lake"},
    {6, 0xaa, 0xaa, "Meteor Lake"},
    {6, 0xad, 0xae, "Granite Rapids", true},
    {6, 0xaf, 0xaf, "Sierra Forest"},
    {6, 0xb7, 0xb7, "Raptor Lake"},
    {6, 0xba, 0xbf, "Raptor Lake"},
    {6, 0xcf, 0xcf, "Emerald Rapids", true},
};

std::string described_cpu() {
  const auto value = [](const char* key) { return proc_value("/proc/cpuinfo", key); };
  if (const std::string part = value("CPU part"); !part.empty())
    return fmt::format("AArch64 (implementer {}, part {})", value("CPU implementer"), part);
  const std::string name = value("model name");
  const std::string built = microarchitecture(
      value("vendor_id"), std::atoi(value("cpu family").c_str()),
      std::atoi(value("model\t").c_str()), value("flags").find("amx_tile") != std::string::npos);
  return built.empty() ? name : fmt::format("{} ({})", name, built);
}

}  // namespace

std::string microarchitecture(std::string_view vendor, int family, int model, bool has_amx) {
  std::span<const Models> known;
  if (vendor == "AuthenticAMD") known = amd_models;
  if (vendor == "GenuineIntel") known = intel_models;
  if (known.empty()) return {};
  for (const Models& models : known)
    if (models.family == family && models.first <= model && model <= models.last &&
        (models.has_amx || !has_amx))
      return models.name;
  return fmt::format("family {}, model {}{}", family, model, has_amx ? " with AMX" : "");
}

Machine detect_machine() {
  Machine machine;
  machine.cpu_model = described_cpu();
  machine.threads_available = thread_limit().threads;
  machine.memory_bytes =
      std::strtod(proc_value("/proc/meminfo", "MemTotal").c_str(), nullptr) * 1024;
  machine.memory_available_bytes =
      std::strtod(proc_value("/proc/meminfo", "MemAvailable").c_str(), nullptr) * 1024;
  for (const MemoryLeft& left : {left_by_control_groups(), left_by_process_limits()})
    if (left.bytes < machine.memory_available_bytes) {
      machine.memory_available_bytes = left.bytes;
      machine.memory_limit = left.limit;
    }
  for (const Isa isa : {Isa::neon, Isa::sse42, Isa::avx2, Isa::avx512})
    if (cpu_has(isa)) machine.isa.emplace_back(name_of(isa));

  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0 && hwloc_topology_load(topology) == 0) {
    machine.cores = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
    const auto size = [&](hwloc_obj_type_t type) -> std::size_t {
      hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
      return cache == nullptr ? 0 : cache->attr->cache.size;
    };
    machine.caches = {size(HWLOC_OBJ_L1CACHE), size(HWLOC_OBJ_L2CACHE), size(HWLOC_OBJ_L3CACHE)};
    hwloc_bitmap_t processors = hwloc_bitmap_alloc();
    if (hwloc_get_cpubind(topology, processors, HWLOC_CPUBIND_PROCESS) == 0)
      if (hwloc_obj_t cache = hwloc_get_next_obj_covering_cpuset_by_type(
              topology, processors, HWLOC_OBJ_L3CACHE, nullptr))
        machine.last_level_cache = static_cast<int>(cache->logical_index);
    hwloc_bitmap_free(processors);
  }
  if (topology != nullptr) hwloc_topology_destroy(topology);
  return machine;
}

std::size_t last_level_cache_per_rank(const Machine& machine) {
  const MpiSession& mpi = mpi_session();
  const int sharing = mpi.ranks_of_host_with(machine.last_level_cache);
  const double bytes =
      static_cast<double>(machine.caches.l3) / (machine.last_level_cache < 0 ? 1 : sharing);
  return static_cast<std::size_t>(mpi.max(bytes));
}

nlohmann::json describe_environment(const Machine& machine) {
  const Commit commit = commit_of(source_directory());
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  nlohmann::json affinity;
  for (const char* name : {"OMP_PLACES", "OMP_PROC_BIND", "OMP_DYNAMIC", "OMP_WAIT_POLICY",
                           "GOMP_SPINCOUNT", "OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE"})
    if (const char* value = std::getenv(name)) affinity[name] = value;
  const Counters counters;
  const EnergyCounter energy;
  const GpuMonitor gpu;
  return {
      {"schema_version", 1},
      {"cpu_model", machine.cpu_model},
      {"cores", machine.cores},
      {"threads_available", machine.threads_available},
      {"isa", machine.isa},
      {"caches", {{"L1", machine.caches.l1}, {"L2", machine.caches.l2}, {"L3", machine.caches.l3}}},
      {"governor", governor.empty() ? "not shown by this machine" : governor},
      {"affinity", affinity},
      {"memory_bytes", machine.memory_bytes},
      {"compiler", STEPLADDER_COMPILER},
      {"compiler_flags", STEPLADDER_FLAGS},
      {"libraries", libraries()},
      {"gpu", device() != nullptr ? nlohmann::json(device()->name()) : nlohmann::json(nullptr)},
      {"gpu_status", device() != nullptr ? "available" : device_status()},
      {"gpu_driver", gpu.driver()},
      {"gpu_power_limit_w", gpu.power_limit_watts()},
      {"gpu_highest_clocks", gpu.highest_clocks()},
      {"gpu_monitor", gpu.why_unavailable().empty() ? "available" : gpu.why_unavailable()},
      {"opencl", opencl::expects_rungs() ? opencl_devices() : nlohmann::json::array()},
      {"commit", commit.hash},
      {"dirty", commit.is_dirty},
      {"counters", counters.why_unavailable().empty() ? "available" : counters.why_unavailable()},
      {"energy", energy.why_unavailable().empty() ? "available" : energy.why_unavailable()}};
}

namespace {
char** program_arguments = nullptr;

// OpenMP reads its settings at program start. When the program cannot start itself again it
// continues with the old settings, and environment.json shows them.
void start_again() {
  // By its path, so that ps and pkill know it by its name; that of a program that was replaced is
  // gone.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(program.c_str(), program_arguments);
  execv("/proc/self/exe", program_arguments);
}

// OpenMP has bound the first thread to one place, which the restarted program would inherit.
void take_all_places() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const int processor : processors_of_places()) CPU_SET(processor, &all);
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

void pin_threads(char** arguments) {
  program_arguments = arguments;
  // A team would have fewer threads than it is asked for while the machine is busy.
  const bool is_dynamic = omp_get_dynamic() != 0;
  if (is_dynamic) setenv("OMP_DYNAMIC", "false", 1);
  if (std::getenv("OMP_PROC_BIND") != nullptr) {
    if (is_dynamic) start_again();
    return;
  }
  setenv("STEPLADDER_PINNED", "1", 1);
  setenv("OMP_PROC_BIND", "close", 1);
  setenv("OMP_PLACES", "cores", 0);
  // An idle team polls so often, about 35 µs, and then sleeps. By default it polls for
  // milliseconds, on the cores of the next subject's own threads.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "3000", 0);
  start_again();
}

void unpin_threads() {
  if (omp_get_proc_bind() == omp_proc_bind_false) return;
  if (std::getenv("STEPLADDER_PINNED") == nullptr)
    throw std::runtime_error(
        fmt::format("OMP_PROC_BIND={} binds two teams of threads to the same cores; unset it to "
                    "run two operations at once",
                    std::getenv("OMP_PROC_BIND")));
  setenv("OMP_PROC_BIND", "false", 1);
  unsetenv("OMP_PLACES");
  take_all_places();
  start_again();
}

}  // namespace stepladder
