// stepladder list: the variants, what each adds, and whether it can run here; for CUDA rungs also
// whether they were verified on a device.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "bench/commands.hpp"
#include "bench/selection.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/file.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/verify/verified.hpp"

namespace stepladder {
namespace {

struct Options {
  std::vector<std::string> primitives;
  std::string place;
  std::string results;  // empty: that of the project
};

std::string layouts_beside_the_plain_one(const VariantInfo& info) {
  if (info.layout != Layout::nchw) return "; supports " + layouts_of(info) + " only";
  return info.nhwc ? "; also supports NHWC" : "";
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

int run(const Options& options) {
  std::vector<const PrimitiveType*> types;
  for (const std::string& name : options.primitives) types.push_back(&primitive(name));
  if (types.empty()) types.assign(primitives().begin(), primitives().end());
  // All is read before the first line is printed.
  const std::filesystem::path results =
      options.results.empty() ? source_directory() / "results" : options.results.c_str();
  const DeviceStatus status(results, source_digests());
  const std::vector<Ladder> ladders = ladders_at(types, options.place);
  for (const Ladder& ladder : ladders) print_ladder(ladder, status);
  return 0;
}

}  // namespace

Command list_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "list", "Print the variants, what each adds, and whether it can run here");
  auto options = std::make_shared<Options>();
  app->add_option("primitives", options->primitives, "Only these primitives");
  add_place_option(*app, options->place);
  app->add_option(
      "--results", options->results,
      "Folder of published runs, the project's by default; their verified.json name the "
      "CUDA rungs verified on a device");
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder
