// stepladder list: the variants, what each adds, whether it can run here; of CUDA rungs also whether
// a device has proved them.
#include <fmt/format.h>

#include <memory>

#include "bench/commands.hpp"
#include "bench/selection.hpp"
#include "harness/problem/primitives.hpp"
#include "harness/io/ranks.hpp"
#include "harness/problem/suites.hpp"
#include "harness/verify/verified.hpp"

namespace stepladder {
namespace {

struct Options {
  std::vector<std::string> primitives;
  std::string place;
  std::string results = (source_directory() / "results").string();
};

void print_ladder(const PrimitiveType& type, const std::vector<Variant>& variants,
                  const DeviceStatus& status) {
  fmt::print("{}\n", type.name());
  for (const Variant& variant : variants) {
    const VariantInfo& info = *variant.info;
    fmt::print("  {:<22} {:<8} {:<5} {}{}{}\n", variant.name, name_of(info.technique),
               info.precision,
               *info.builds_on != '\0' ? fmt::format("[on {}] ", info.builds_on) : "", info.adds,
               *info.layouts != '\0' ? fmt::format("; takes {} too", info.layouts) : "");
    if (const std::string why = why_not_here(type, variant); !why.empty())
      fmt::print("  {:<22} unavailable: {}\n", "", why);
    if (info.place == Place::cuda) fmt::print("  {:<22} {}\n", "", status.of(variant));
  }
}

int run(const Options& options) {
  std::vector<const PrimitiveType*> types;
  for (const std::string& name : options.primitives) types.push_back(&primitive(name));
  if (types.empty()) types.assign(primitives().begin(), primitives().end());
  // All is read before the first line is printed.
  const DeviceStatus status(options.results, source_digests());
  std::vector<std::pair<const PrimitiveType*, std::vector<Variant>>> ladders;
  for (const PrimitiveType* type : types) {
    std::vector<Variant> variants = at_place(type->variants(), options.place);
    if (variants.empty() && !options.primitives.empty()) throw lacks_place(*type, options.place);
    if (!variants.empty()) ladders.emplace_back(type, std::move(variants));
  }
  for (const auto& [type, variants] : ladders) print_ladder(*type, variants, status);
  return 0;
}

}  // namespace

Command list_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("list", "Variants, what each adds, available here or why not");
  auto options = std::make_shared<Options>();
  app->add_option("primitives", options->primitives, "Only these primitives");
  add_place_option(*app, options->place);
  app->add_option("--results", options->results,
                  "The published runs, whose verified.json tell which CUDA rungs ran on a device")
      ->capture_default_str();
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder
