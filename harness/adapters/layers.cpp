#include "kernels/layers/layers.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"

namespace stepladder {

using layers::Direction;
using layers::Layer;
using layers::Layers;

namespace {

struct LayersAdapter {
  using Primitive = Layers;
  using Problem = layers::Problem;
  enum Operand : std::size_t { x, y, dy, dx, bias, dbias, labels, loss };
  static constexpr std::int64_t step = 7;  // of dropout

  static std::vector<OperandInfo> operands(const Problem& p) {
    const std::int64_t all = p.count();
    std::vector<OperandInfo> f = {{"x", all, Role::unused},
                                  {"y", all, Role::unused},
                                  {"dy", all, Role::unused},
                                  {"dx", all, Role::unused},
                                  {"bias", p.channels, Role::unused},
                                  {"dbias", p.channels, Role::unused},
                                  {"labels", p.batch, Role::unused, 1},
                                  {"loss", p.batch, Role::unused}};
    for (const Operand i : {x, y, dy, dx}) f[i].extents = {p.batch, p.channels, p.spatial};
    const auto set = [&](Role role, std::initializer_list<Operand> which) {
      for (const Operand i : which) f[i].role = role;
    };
    const bool forward = p.direction == Direction::forward;
    switch (p.layer) {
      case Layer::bias:
        set(Role::in_out,
            forward ? std::initializer_list<Operand>{y} : std::initializer_list<Operand>{});
        set(Role::input, {forward ? bias : dy});
        if (!forward) set(Role::output, {dbias});
        break;
      case Layer::relu:
      case Layer::sigmoid:
      case Layer::tanh:
        if (forward)
          set(Role::input, {x}), set(Role::output, {y});
        else
          set(Role::input, {y, dy}), set(Role::output, {dx});
        break;
      case Layer::dropout:
        if (forward)
          set(Role::input, {x}), set(Role::output, {y});
        else
          set(Role::input, {dy}), set(Role::output, {dx});
        break;
      case Layer::local_response_normalization:
        if (forward)
          set(Role::input, {x}), set(Role::output, {y});
        else
          set(Role::input, {x, dy}), set(Role::output, {dx});
        break;
      case Layer::softmax_cross_entropy:
        set(Role::input, {x, labels}), set(Role::output, {y, loss, dx});
        break;
    }
    return f;
  }
  static layers::Operands bind(const Problem&, const std::vector<void*>& at) {
    const auto f = [&](Operand i) { return static_cast<float*>(at[i]); };
    return {.x = f(x),
            .y = f(y),
            .dy = f(dy),
            .dx = f(dx),
            .bias = f(bias),
            .dbias = f(dbias),
            .labels = static_cast<std::uint8_t*>(at[labels]),
            .loss = f(loss),
            .step = step};
  }
  static std::vector<const void*> pointers(const Problem&, const layers::Operands& o) {
    return {o.x, o.y, o.dy, o.dx, o.bias, o.dbias, o.labels, o.loss};
  }
  static layers::Operands host(Contents& contents) {
    const auto f = [&](Operand i) { return floats(contents, i); };
    return {.x = f(x),
            .y = f(y),
            .dy = f(dy),
            .dx = f(dx),
            .bias = f(bias),
            .dbias = f(dbias),
            .labels = reinterpret_cast<const std::uint8_t*>(contents[labels].data()),
            .loss = f(loss),
            .step = step};
  }

  // The results in double, and storage for them.
  struct Results {
    std::vector<double> y, dx, dbias, loss, magnitude;
    explicit Results(const Problem& p)
        : y(n(p.count())),
          dx(n(p.count())),
          dbias(n(p.channels)),
          loss(n(p.batch)),
          magnitude(n(std::max(p.count(), p.channels))) {}
    static std::size_t n(std::int64_t count) { return static_cast<std::size_t>(count); }
    layers::Reference view() {
      return {y.data(), dx.data(), dbias.data(), loss.data(), magnitude.data()};
    }
  };

  static void fill(const Problem& p, Tier tier, Random& random, Contents& contents) {
    const bool has_sums = p.layer == Layer::bias && p.direction == Direction::backward;
    const std::int64_t largest =
        has_sums ? std::clamp<std::int64_t>((1 << 24) / (p.batch * p.spatial), 1, 8) : 8;
    for (const Operand i : {x, y, dy, bias})
      for (std::size_t j = 0; j < contents[i].size() / 4; ++j)
        floats(contents, i)[j] =
            tier == Tier::exact ? small_integer(random, largest) : random.uniform(-3.0F, 3.0F);
    for (std::byte& label : contents[labels])
      label =
          static_cast<std::byte>(random.integer(0, std::min<std::int64_t>(p.channels, 256) - 1));
    if (p.direction == Direction::forward || contents[y].empty()) return;
    // Backward reads the y that forward computed from some x.
    std::vector<float> inputs = {floats(contents, y), floats(contents, y) + p.count()};
    Problem forward = p;
    forward.direction = Direction::forward;
    Results results(p);
    layers::Operands host_operands = host(contents);
    host_operands.x = inputs.data();
    layers::reference(forward, host_operands, results.view());
    std::copy(results.y.begin(), results.y.end(), floats(contents, y));
  }

  static void expect(const Problem& p, Tier tier, const Random&, Contents& contents,
                     std::vector<Expected>& expected) {
    Results results(p);
    if (p.layer == Layer::bias && p.direction == Direction::forward)
      std::copy_n(floats(contents, y), p.count(), results.y.begin());
    layers::reference(p, host(contents), results.view());
    const std::vector<OperandInfo> f = operands(p);
    const auto keep = [&](Operand i, const std::vector<double>& value, const auto& bound) {
      if (!f[i].is_result()) return;
      expected[i].value.assign(value.begin(),
                               value.begin() + static_cast<std::ptrdiff_t>(f[i].count));
      expected[i].bound.resize(expected[i].value.size());
      for (std::size_t j = 0; j < expected[i].value.size(); ++j)
        expected[i].bound[j] = tier == Tier::exact ? 0.0F : static_cast<float>(bound(j));
    };
    constexpr double u = 0x1p-24;
    // A few roundings, and a transcendental function with an error of a few units in the last
    // place. The absolute part covers the cancellation in 1 + e^x and in sums over channels.
    // n u of the sum over channels in the divisor. Its terms are positive: roundings of small terms
    // to a large partial sum do not have mean zero.
    const double sum =
        u * static_cast<double>(p.layer == Layer::softmax_cross_entropy          ? p.channels
                                : p.layer == Layer::local_response_normalization ? p.size
                                                                                 : 0);
    const auto elementwise = [&](const std::vector<double>& value) {
      return [&](std::size_t j) { return (32 * u + sum) * std::abs(value[j]) + 8 * u; };
    };
    keep(y, results.y, elementwise(results.y));
    keep(loss, results.loss,
         [&](std::size_t j) { return u * (64 * std::abs(results.loss[j]) + 64) + sum; });
    keep(dbias, results.dbias, [&](std::size_t j) {
      return rounding_bound(static_cast<double>(p.batch * p.spatial) + 2) * results.magnitude[j];
    });
    if (p.layer == Layer::local_response_normalization)
      keep(dx, results.dx,
           [&](std::size_t j) { return (64 * u + 2 * sum) * results.magnitude[j] + 1e-30; });
    else
      keep(dx, results.dx, elementwise(results.dx));
  }
  static bool has_exact_tier(const Problem& p) {
    return p.layer == Layer::bias || p.layer == Layer::relu;
  }
};

}  // namespace

template <>
std::vector<Access> accesses<Layers>(const layers::Problem& p, const layers::Operands& o) {
  return accesses_of<LayersAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<Layers>(const layers::Problem& p, std::string suite,
                                        std::string name) {
  return std::make_unique<TypedCase<LayersAdapter>>(
      p, describe(Layers::name, Layers::plain_layout, p, std::move(suite), std::move(name)));
}

namespace {

constexpr std::initializer_list<std::pair<const char*, Layer>> names = {
    {"bias", Layer::bias},
    {"relu", Layer::relu},
    {"sigmoid", Layer::sigmoid},
    {"tanh", Layer::tanh},
    {"dropout", Layer::dropout},
    {"lrn", Layer::local_response_normalization},
    {"softmax", Layer::softmax_cross_entropy}};

class LayersType final : public PrimitiveType {
 public:
  const char* name() const override { return Layers::name; }
  // Without a layer: those of any shape, so not softmax.
  std::vector<SuiteColumn> suite_columns() const override {
    return {{"batch"},
            {"channels"},
            {"spatial", {"1"}},
            {"layer", {"bias", "relu", "sigmoid", "tanh", "dropout", "lrn"}}};
  }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int) const override {
    constexpr std::int64_t most = 1 << 20;
    layers::Problem p{.layer = read_name<Layer>(row, "layer", names),
                      .batch = row.integer("batch", 1, most),
                      .channels = row.integer("channels", 1, most),
                      .spatial = row.integer("spatial", 1, most)};
    expect_countable(row, "x", {p.batch, p.channels, p.spatial});
    if (p.layer == Layer::softmax_cross_entropy && p.spatial != 1)
      row.fail(fmt::format("column spatial holds {}; expected 1 for softmax", p.spatial));
    std::vector<std::unique_ptr<Case>> all;
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      p.direction = direction;
      if (layers::has(p.layer, direction))
        all.push_back(make_case<Layers>(p, row.text("suite"), row.text("name")));
    }
    return all;
  }
  std::unique_ptr<Case> random_case(Random& random, int) const override {
    layers::Problem p;
    p.layer = static_cast<Layer>(random.integer(0, 6));
    p.direction = random.coin() && layers::has(p.layer, Direction::backward) ? Direction::backward
                                                                             : Direction::forward;
    p.batch = random.integer(1, 9);
    p.channels = random.integer(1, 40);
    p.spatial =
        p.layer == Layer::softmax_cross_entropy || random.coin() ? 1 : random.integer(2, 150);
    p.rate = random.coin() ? 0.5F : 0.2F;
    p.seed = static_cast<std::uint64_t>(random.integer(0, 1 << 30));
    p.size = 2 * random.integer(0, 3) + 1;
    return random_case_of<Layers>(p);
  }
};

}  // namespace

const PrimitiveType& layers_type() {
  static const LayersType type;
  return type;
}

}  // namespace stepladder
