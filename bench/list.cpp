// stepladder list: the variants, what each adds, whether it can run here.
#include <fmt/format.h>

#include <memory>

#include "bench/commands.hpp"
#include "harness/primitives.hpp"
#include "harness/ranks.hpp"

namespace stepladder {
namespace {

void print_ladder(const PrimitiveType& type) {
  fmt::print("{}\n", type.name());
  for (const Variant& variant : type.variants()) {
    const VariantInfo& info = *variant.info;
    fmt::print("  {:<22} {:<8} {:<5} {}{}\n", variant.name, name_of(info.technique), info.precision,
               *info.builds_on != '\0' ? fmt::format("[on {}] ", info.builds_on) : "", info.adds);
    if (const std::string why = why_not_here(type, variant); !why.empty())
      fmt::print("  {:<22} unavailable: {}\n", "", why);
  }
}

}  // namespace

Command list_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("list", "Variants, what each adds, available here or why not");
  auto names = std::make_shared<std::vector<std::string>>();
  app->add_option("primitives", *names, "Only these primitives");
  return {app, [names] {
            if (names->empty())
              for (const PrimitiveType* type : primitives()) print_ladder(*type);
            std::vector<const PrimitiveType*> named;  // all of them, before the first is printed
            for (const std::string& name : *names) named.push_back(&primitive(name));
            for (const PrimitiveType* type : named) print_ladder(*type);
            return 0;
          }};
}

}  // namespace stepladder
