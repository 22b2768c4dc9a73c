// OpenCL rungs: verify finds what a kernel does wrong, a rung computes on as many threads as it is
// given, and errors name what failed.
#include <gtest/gtest.h>

#ifdef STEPLADDER_HAVE_OPENCL

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "kernels/common/opencl/devices.hpp"
#include "kernels/matmul/opencl/plan.hpp"
#include "tests/verdict.hpp"

namespace stepladder::matmul {
namespace {

constexpr const char* parameters =
    "kernel void multiply(int m, int n, int k, global const float* a, global const float* b, "
    "global float* c) { const int j = get_global_id(0), i = get_global_id(1);";
constexpr const char* sum =
    "float sum = 0; for (int l = 0; l < k; ++l)"
    "  sum += a_at(a, m, k, i, l) * b_at(b, k, n, l, j);";

// The naive kernel with other first and last statements.
std::string kernel(const std::string& first, const std::string& last) {
  return std::string(parameters) + first + sum + last + "}";
}

const std::string right = kernel("if (i >= m || j >= n) return;", "c[i * n + j] = sum;");
const std::string forgets_the_last_column =
    kernel("if (i >= m || j >= n / 4 * 4) return;", "c[i * n + j] = sum;");
const std::string writes_past_the_end =
    kernel("if (i >= m || j >= n) return;", "c[i * n + j] = sum; if (i == m - 1) c[m * n] = 0;");
const std::string changes_an_operand =
    kernel("if (i >= m || j >= n) return;", "c[i * n + j] = sum; ((global float*)b)[0] += 1;");

template <const std::string& source>
std::unique_ptr<stepladder::Plan<Operands>> plan_of_source(const Problem& problem,
                                                           const Resources& resources) {
  return std::make_unique<OpenClPlan>(problem, resources, source.c_str(),
                                      OpenClTile{.elements = {8, 8}, .items = {8, 8}});
}

class OpenCl : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = opencl::why_no_device(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(OpenCl, VerifyFindsWhatAKernelDoesWrong) {
  constexpr Problem problem{.m = 5, .n = 7, .k = 9};
  EXPECT_TRUE(passes<Matmul>(problem, unregistered<Matmul>("right", plan_of_source<right>)));
  EXPECT_TRUE(is_caught<Matmul>(
      problem, unregistered<Matmul>("tail", plan_of_source<forgets_the_last_column>), "c["));
  EXPECT_TRUE(is_caught<Matmul>(problem,
                                unregistered<Matmul>("end", plan_of_source<writes_past_the_end>),
                                "c was written out of bounds"));
  EXPECT_TRUE(is_caught<Matmul>(
      problem, unregistered<Matmul>("input", plan_of_source<changes_an_operand>), "b"));
}

TEST_F(OpenCl, ADeviceWithMemoryOfItsOwnGetsCopiesOfTheOperands) {
  opencl::Session session = opencl::session(1);
  session.is_cpu = false;
  opencl::Kernel add(session,
                     "kernel void add(global const int* a, global int* b, global int* c)"
                     "{ const int i = get_global_id(0); b[i] += a[i]; c[i] = b[i]; }",
                     "add", "");
  constexpr std::size_t bytes = 4 * sizeof(int);
  opencl::Operand a(session, bytes, opencl::Access::read);
  opencl::Operand b(session, bytes, opencl::Access::read_and_write);
  opencl::Operand c(session, bytes, opencl::Access::write);
  std::vector<int> a_host{1, 2, 3, 4}, b_host{10, 20, 30, 40}, c_host(4, -1);
  for (const int run : {1, 2}) {  // the second one sees what the host has changed meanwhile
    add.set(a.before_kernels(a_host.data()), b.before_kernels(b_host.data()),
            c.before_kernels(c_host.data()));
    add.start({1, 1}, {4, 1});
    b.after_kernels(b_host.data());
    c.after_kernels(c_host.data());
    opencl::finish(session);
    EXPECT_EQ(b_host, c_host);
    EXPECT_EQ(c_host.back(), run == 1 ? 44 : 144);
    a_host.back() = 100;
  }
}

TEST_F(OpenCl, AProgramThatDoesNotCompileShowsTheBuildLog) {
  const std::string error = error_of([] {
    opencl::Kernel(opencl::session(1), "kernel void f() { no_such_thing = 1; }", "f", "");
  });
  EXPECT_TRUE(says(error, {"clBuildProgram: CL_BUILD_PROGRAM_FAILURE", "no_such_thing"}));
}

TEST_F(OpenCl, AnErrorHasItsName) {
  const std::string error =
      error_of([] { opencl::Kernel(opencl::session(1), "kernel void f() {}", "g", ""); });
  EXPECT_TRUE(says(error, {"clCreateKernel: CL_INVALID_KERNEL_NAME"}));
}

TEST_F(OpenCl, MoreThreadsThanTheDeviceHasAreUnsupported) {
  EXPECT_THROW(opencl::session(opencl::chosen_device()->compute_units + 1), Unsupported);
}

// Nanoseconds on a processor of each thread of this process.
std::vector<double> seconds_of_threads() {
  std::vector<double> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    double nanoseconds = 0;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    all.push_back(nanoseconds);
  }
  return all;
}

// Threads that had more than a fifth of the CPU time of some runs.
long busy_threads(Plan& plan, const Operands& operands) {
  const std::vector<double> before = seconds_of_threads();
  for (int run = 0; run < 20; ++run) plan.run(operands);
  std::vector<double> after = seconds_of_threads();
  double all = 0;
  for (std::size_t i = 0; i < after.size(); ++i) all += after[i] -= before.at(i);
  return std::ranges::count_if(after, [&](double one) { return one > all / 5; });
}

TEST_F(OpenCl, ARungComputesOnAsManyThreadsAsItIsGiven) {
  const opencl::Description& device = *opencl::chosen_device();
  if (!device.is_cpu || device.compute_units < 2 || std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << device.name << " is no CPU of two threads";
  constexpr std::int64_t side = 256;
  std::vector<float> a(side * side, 1.0F), b(side * side, 1.0F), c(side * side);
  const Operands operands{a.data(), b.data(), c.data()};
  for (const int threads : {1, 2}) {
    const auto plan =
        plan_of_source<right>({.m = side, .n = side, .k = side}, {.threads = threads});
    plan->run(operands);  // compiles
    long busy = 0;        // on a busy machine one thread may do nearly all
    for (int attempt = 0; attempt < 10 && busy != threads; ++attempt)
      busy = busy_threads(*plan, operands);
    EXPECT_EQ(busy, threads);
  }
}

}  // namespace
}  // namespace stepladder::matmul

#endif
