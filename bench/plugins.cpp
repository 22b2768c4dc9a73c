#include "bench/plugins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bench/plugin.h"
#include "harness/io/shell.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/shared_library.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/matmul/vendor/blas_library.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder {
namespace {

// For each primitive: the C problem, the function's name, and how it is called.
struct MatmulPlugin {
  using Primitive = matmul::Matmul;
  using Problem = stepladder_matmul_problem;
  using Function = decltype(stepladder_matmul);
  static Problem of(const matmul::Problem& p, const Resources& resources) {
    return {p.m, p.n, p.k, p.transpose_a, p.transpose_b, resources.threads};
  }
  static void call(Function* function, const Problem& p, const matmul::Operands& o) {
    function(&p, o.a, o.b, o.c);
  }
};

struct ConvolutionPlugin {
  using Primitive = convolution::Convolution;
  using Problem = stepladder_convolution_problem;
  using Function = decltype(stepladder_convolution);
  static Problem of(const convolution::Problem& p, const Resources& resources) {
    return {p.batch,
            p.in_channels,
            p.height,
            p.width,
            p.out_channels,
            p.kernel_h,
            p.kernel_w,
            p.stride_h,
            p.stride_w,
            p.pad_h,
            p.pad_w,
            p.groups,
            static_cast<int>(p.direction),
            resources.threads};
  }
  static void call(Function* function, const Problem& p, const convolution::Operands& o) {
    function(&p, o.x, o.w, o.y);
  }
};

template <class P>
stepladder_pooling_problem pooling_problem(const P& p, const Resources& resources, bool counts) {
  return {p.batch,
          p.channels,
          p.height,
          p.width,
          p.window_h,
          p.window_w,
          p.stride_h,
          p.stride_w,
          p.pad_h,
          p.pad_w,
          static_cast<int>(p.direction),
          resources.threads,
          counts};
}

struct MaxPoolPlugin {
  using Primitive = max_pool::MaxPool;
  using Problem = stepladder_pooling_problem;
  using Function = decltype(stepladder_max_pool);
  static Problem of(const max_pool::Problem& p, const Resources& resources) {
    return pooling_problem(p, resources, false);
  }
  static void call(Function* function, const Problem& p, const max_pool::Operands& o) {
    function(&p, o.x, o.y, o.argmax);
  }
};

struct AveragePoolPlugin {
  using Primitive = average_pool::AveragePool;
  using Problem = stepladder_pooling_problem;
  using Function = decltype(stepladder_average_pool);
  static Problem of(const average_pool::Problem& p, const Resources& resources) {
    return pooling_problem(p, resources, p.count == average_pool::Count::include_padding);
  }
  static void call(Function* function, const Problem& p, const average_pool::Operands& o) {
    function(&p, o.x, o.y);
  }
};

struct SgdUpdatePlugin {
  using Primitive = sgd_update::SgdUpdate;
  using Problem = stepladder_sgd_update_problem;
  using Function = decltype(stepladder_sgd_update);
  static Problem of(const sgd_update::Problem& p, const Resources& resources) {
    return {p.count,          p.weight_decay, p.momentum, p.rho,
            p.beta1,          p.beta2,        p.epsilon,  static_cast<int>(p.optimizer),
            resources.threads};
  }
  static void call(Function* function, const Problem& p, const sgd_update::Operands& o) {
    function(&p, o.weights, o.gradient, o.state1, o.state2, o.learning_rate, o.step);
  }
};

struct AllReducePlugin {
  using Primitive = all_reduce::AllReduce;
  using Problem = stepladder_all_reduce_problem;
  using Function = decltype(stepladder_all_reduce);
  static Problem of(const all_reduce::Problem& p, const Resources& resources) {
    if (p.gpus) throw Unsupported("plugins reduce the vectors of processes, not of GPUs");
    return {p.count, resources.communicator, p.operation == all_reduce::Operation::mean, p.ranks};
  }
  static void call(Function* function, const Problem& p, const all_reduce::Operands& o) {
    function(&p, o.input, o.output);
  }
};

// A factory is a function without state: one for each file that may be opened.
constexpr std::size_t most_files = 8;

struct File {
  std::string path;
  VariantInfo info;  // entries point to it
  std::string name;
};
std::deque<File> files;

template <class Adapter, std::size_t slot>
class PluginPlan final : public PlanOf<typename Adapter::Primitive> {
 public:
  using Supports = int(const typename Adapter::Problem*);
  static inline typename Adapter::Function* function = nullptr;
  static inline Supports* supports = nullptr;  // null: every problem

  PluginPlan(const typename Adapter::Primitive::Problem& problem, const Resources& resources)
      : problem_(Adapter::of(problem, resources)) {
    if (supports != nullptr && supports(&problem_) == 0)
      throw Unsupported("the plugin does not support this problem");
  }
  void run(const typename Adapter::Primitive::Operands& operands) override {
    Adapter::call(function, problem_, operands);
  }
  std::string remark() const override { return files[slot].path; }

 private:
  typename Adapter::Problem problem_;
};

template <std::size_t slot>
class BlasFilePlan final : public matmul::BlasPlan {
 public:
  BlasFilePlan(const matmul::Problem& problem, const Resources& resources)
      : BlasPlan(problem, resources, {{files[slot].path.c_str()}, "named by --blas"}) {}
  std::string remark() const override { return files[slot].path; }
};

// "libmine.so" -> "mine"
std::string rung_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  name = name.substr(0, name.find('.'));
  if (name.starts_with("lib")) name.erase(0, 3);
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!is_name)
    throw std::runtime_error(fmt::format(
        "{}: expected a file named like lib<rung>.so, of a-z, 0-9 and _", path.string()));
  return name;
}

// Adds a rung above the first one. Throws if the primitive has one of that name.
void add_rung(const char* primitive, std::size_t slot, detail::AnyFunction factory) {
  const auto entries = detail::entries(primitive);
  for (const detail::Entry& entry : entries)
    if (files[slot].name == entry.info->name)
      throw std::runtime_error(fmt::format("{}: {} has a rung {} already", files[slot].path,
                                           primitive, files[slot].name));
  if (files[slot].info.technique != Technique::vendor && !entries.empty())
    files[slot].info.builds_on = entries.front().info->name;
  detail::add(primitive, {&files[slot].info, factory, nullptr});
}

template <class Adapter, std::size_t slot>
bool add_function(const SharedLibrary& library) {
  using Plan = PluginPlan<Adapter, slot>;
  const std::string primitive = Adapter::Primitive::name;
  const std::string function = "stepladder_" + primitive;
  const std::string supports = "stepladder_supports_" + primitive;
  if (!library.has(function.c_str())) return false;
  Plan::function = library[function.c_str()];
  if (library.has(supports.c_str())) Plan::supports = library[supports.c_str()];
  add_rung(Adapter::Primitive::name, slot,
           reinterpret_cast<detail::AnyFunction>(&make_plan<typename Adapter::Primitive, Plan>));
  return true;
}

template <std::size_t slot>
void add_functions(const SharedLibrary& library) {
  const bool any[] = {
      add_function<MatmulPlugin, slot>(library),    add_function<ConvolutionPlugin, slot>(library),
      add_function<MaxPoolPlugin, slot>(library),   add_function<AveragePoolPlugin, slot>(library),
      add_function<SgdUpdatePlugin, slot>(library), add_function<AllReducePlugin, slot>(library)};
  if (std::find(std::begin(any), std::end(any), true) == std::end(any))
    throw std::runtime_error(
        fmt::format("{}: no function of bench/plugin.h, such as stepladder_matmul (in C++ they "
                    "are extern \"C\": include plugin.h)",
                    files[slot].path));
}

// Returns the file's slot, or nothing if it is open already.
std::optional<std::size_t> open(const std::string& argument, Technique technique,
                                const char* adds) {
  const std::string path = std::filesystem::absolute(argument).lexically_normal().string();
  for (std::size_t slot = 0; slot < files.size(); ++slot)
    if (files[slot].path == path && files[slot].info.technique == technique) return std::nullopt;
  if (files.size() == most_files)
    throw std::runtime_error(fmt::format("expected at most {} plugins and libraries", most_files));
  File& file =
      files.emplace_back(File{path,
                              {.name = "", .technique = technique, .adds = adds},
                              (technique == Technique::vendor ? "blas_" : "") + rung_name(path)});
  file.info.name = file.name.c_str();
  file.info.threaded = true;
  return files.size() - 1;
}

template <std::size_t... slot>
void load_plugin(const std::string& argument, std::index_sequence<slot...>) {
  const auto own = open(argument, Technique::openmp, "a plugin");
  if (!own) return;
  const SharedLibrary library(files[*own].path);
  ((slot == *own ? add_functions<slot>(library) : void()), ...);
}

template <std::size_t... slot>
void load_blas(const std::string& argument, std::index_sequence<slot...>) {
  const auto own = open(argument, Technique::vendor, "cblas_sgemm of a library");
  if (!own) return;
  static_cast<void>(SharedLibrary(files[*own].path, own_functions_first)["cblas_sgemm"]);
  files[*own].info.epilogue = true;
  constexpr std::array factories{&make_plan<matmul::Matmul, BlasFilePlan<slot>>...};
  add_rung("matmul", *own, reinterpret_cast<detail::AnyFunction>(factories[*own]));
}

}  // namespace

void add_plugin_options(CLI::App& app, std::string& arguments) {
  constexpr auto slots = std::make_index_sequence<most_files>{};
  const auto option = [&](const char* name, const char* meaning, const auto& load) {
    app.add_option_function<std::vector<std::string>>(
           name,
           [&arguments, name, load](const std::vector<std::string>& all) {
             for (const std::string& file : all) {
               load(file);
               arguments += fmt::format(" {} {}", name, shell_quoted(file));
             }
           },
           meaning)
        ->allow_extra_args(false);
  };
  option("--plugin",
         "A shared object with functions of bench/plugin.h: a rung of its name. "
         "Repeatable",
         [=](const std::string& file) { load_plugin(file, slots); });
  option("--blas", "A library with cblas_sgemm: the rung blas_<name> of matmul. Repeatable",
         [=](const std::string& file) { load_blas(file, slots); });
}

}  // namespace stepladder
