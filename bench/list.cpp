// stepladder list: the rungs as a tree, what each adds, and why it does not run here; with --full
// every variant, and whether CUDA rungs were verified on a device.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "bench/commands.hpp"
#include "bench/selection.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/file.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/verify/verified.hpp"
#include "kernels/common/opencl/devices.hpp"

namespace stepladder {
namespace {

struct ListOptions {
  std::vector<std::string> primitives;
  std::string place;
  std::string results;  // empty: that of the project
  bool full = false;
};

std::string layouts_beside_the_plain_one(const VariantInfo& info) {
  if (info.layout != Layout::nchw) return "; supports " + layouts_of(info) + " only";
  return info.nhwc ? "; also supports NHWC" : "";
}

// The builds of one file, for all instruction sets.
struct Family {
  const Variant* first;
  std::string isas, why;  // why: reason of the widest build
};

std::vector<Family> families_of(const Ladder& ladder) {
  std::vector<Family> families;
  for (const Variant& variant : ladder.variants) {
    auto family = std::find_if(families.begin(), families.end(), [&](const Family& known) {
      return known.first->info->name == std::string_view(variant.info->name);
    });
    if (family == families.end()) family = families.insert(families.end(), {&variant, "", ""});
    if (variant.info->isa != Isa::any)
      family->isas += (family->isas.empty() ? " [" : " ") + std::string(name_of(variant.info->isa));
    family->why = why_not_here(*ladder.type, variant);
  }
  for (Family& family : families)
    if (!family.isas.empty()) family.isas += "]";
  return families;
}

// The families that build on `below`, each with those that build on it. A reason that is that of
// the rung below is not said again.
void print_branch(const std::vector<Family>& families, const std::string& below,
                  const std::string& why_below, const std::string& indent) {
  std::vector<const Family*> branch;
  for (const Family& family : families)
    if (below == family.first->info->builds_on) branch.push_back(&family);
  for (const Family* family : branch) {
    const VariantInfo& info = *family->first->info;
    const bool is_last = family == branch.back();
    fmt::print("{}{} {}{}: {}{}{}\n", indent, is_last ? "└─" : "├─", info.name, family->isas,
               info.adds, layouts_beside_the_plain_one(info),
               family->why.empty()        ? ""
               : family->why == why_below ? " (unavailable)"
                                          : fmt::format(" (unavailable: {})", family->why));
    print_branch(families, info.name, family->why, indent + (is_last ? "   " : "│  "));
  }
}

void print_tree(const Ladder& ladder) {
  fmt::print("{}\n", ladder.type->name());
  const std::vector<Family> families = families_of(ladder);
  print_branch(families, "", "", " ");
}

void print_ladder(const Ladder& ladder, const DeviceStatus& status) {
  fmt::print("{}\n", ladder.type->name());
  for (const Variant& variant : ladder.variants) {
    const VariantInfo& info = *variant.info;
    fmt::print("  {:<22} {:<8} {:<5} {}{}{}\n", variant.name, name_of(info.technique),
               name_of(info.precision),
               *info.builds_on != '\0' ? fmt::format("[on {}] ", info.builds_on) : "", info.adds,
               layouts_beside_the_plain_one(info));
    if (const std::string why = why_not_here(*ladder.type, variant); !why.empty())
      fmt::print("  {:<22} unavailable: {}\n", "", why);
    // Libraries are verified by `bench`, on what it times.
    if (info.place == Place::cuda && info.technique != Technique::vendor)
      fmt::print("  {:<22} {}\n", "", status.of(variant));
  }
}

int run(const ListOptions& options) {
  std::vector<const PrimitiveType*> types;
  for (const std::string& name : options.primitives) types.push_back(&primitive(name));
  if (types.empty()) types.assign(primitives().begin(), primitives().end());
  // All is read before the first line is printed.
  opencl::chosen_device();
  const std::filesystem::path results =
      options.results.empty() ? source_directory() / "results" : options.results.c_str();
  const DeviceStatus status(results, source_digests());
  const std::vector<Ladder> ladders = ladders_at(types, options.place);
  for (const Ladder& ladder : ladders)
    if (options.full)
      print_ladder(ladder, status);
    else
      print_tree(ladder);
  return 0;
}

}  // namespace

Command list_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "list", "Print the rungs, what each adds to the one below, and why it does not run here");
  auto options = std::make_shared<ListOptions>();
  app->add_option("primitives", options->primitives, "Only these primitives");
  add_place_option(*app, options->place);
  app->add_flag(
      "--full", options->full,
      "A line for every variant, with technique and precision; for CUDA rungs also whether "
      "they were verified on a device");
  app->add_option(
      "--results", options->results,
      "Folder of published runs, the project's by default; their verified.json name the "
      "CUDA rungs verified on a device");
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder
