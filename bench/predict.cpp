// stepladder predict: the rung that a cost model expects to be fastest for each problem, without
// measuring it.
#include <fmt/format.h>

#include <memory>

#include "bench/commands.hpp"
#include "bench/networks.hpp"
#include "bench/option_checks.hpp"
#include "bench/selection.hpp"

namespace stepladder {
namespace {

struct PredictOptions {
  Selection selection;
  std::vector<int> threads = default_threads();
  std::string cost_model;
};

int run(const PredictOptions& options) {
  const CostModel model = BestOptions{.tuned = "", .cost_model = options.cost_model}.load().model;
  const std::vector<Work> work = options.selection.work("layers");
  fmt::print("{:<16} {:<20} {:<44} {:>7}  {:<22} {:>13}  {}\n", "primitive", "direction", "problem",
             "threads", "fastest", "predicted, us", "next, its time / the fastest's");
  bool any = false;
  for (const Work& each : work)
    for (const std::unique_ptr<Case>& problem : each.problems) {
      problem->allocate(1, nullptr);
      for (const int threads : without_repeats(options.threads)) {
        const std::vector<PredictedRung> found =
            predicted_rungs(model, *problem, each.variants, {.threads = threads});
        if (found.empty()) continue;
        any = true;
        fmt::print("{:<16} {:<20} {:<44} {:>7}  {:<22} {:>13.1f}  {}\n", each.type->name(),
                   problem->info().direction, problem->info().name, threads, found[0].variant->name,
                   1e6 * found[0].seconds,
                   found.size() < 2 ? ""
                                    : fmt::format("{} {:.2f}", found[1].variant->name,
                                                  found[1].seconds / found[0].seconds));
      }
    }
  if (!any)
    throw std::runtime_error(fmt::format(
        "{} has none of these problems' directions, numbers of threads, rungs and sizes",
        options.cost_model));
  return 0;
}

}  // namespace

Command predict_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "predict", "Print the rung that a cost model expects to be fastest for each problem");
  auto options = std::make_shared<PredictOptions>();
  options->selection.add_options(*app);
  add_threads(*app, options->threads, "Numbers of threads, for example 1,2");
  app->add_option("--cost-model", options->cost_model, "File written by `make cost-model`")
      ->check(CLI::ExistingFile)
      ->required();
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder
