"""--plugin and --blas: kernels of shared objects are rungs like all others."""

import re

import pytest

from tests.commands import read_csv

LOOP = """
#include "plugin.h"
void stepladder_matmul(const stepladder_matmul_problem* p, const float* a, const float* b,
                       float* c) {
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < %s; ++k)
        sum += (p->transpose_a ? a[k * p->m + i] : a[i * p->k + k]) *
               (p->transpose_b ? b[j * p->k + k] : b[k * p->n + j]);
      c[i * p->n + j] = sum;
    }
}
"""
RIGHT = LOOP % "p->k"
NO_TRANSPOSES = RIGHT + """
int stepladder_supports_matmul(const stepladder_matmul_problem* p) {
  return !p->transpose_a && !p->transpose_b;
}
"""
CRASHES = ('#include "plugin.h"\n'
           'void stepladder_matmul(const stepladder_matmul_problem*, const float*, '
           'const float*, float* c) { *(volatile float*)0 = 1; c[0] = 1; }\n')
OTHERS = """
#include "plugin.h"
void stepladder_average_pool(const stepladder_pooling_problem* p, float* x, float* y) {
  const int64_t out_h = (p->height + 2 * p->pad_h - p->window_h) / p->stride_h + 1;
  const int64_t out_w = (p->width + 2 * p->pad_w - p->window_w) / p->stride_w + 1;
  for (int64_t plane = 0; plane < p->batch * p->channels; ++plane)
    for (int64_t i = 0; i < out_h; ++i)
      for (int64_t j = 0; j < out_w; ++j) {
        float sum = 0;
        int count = 0;
        const int64_t top = i * p->stride_h - p->pad_h, left = j * p->stride_w - p->pad_w;
        for (int64_t h = top; h < top + p->window_h; ++h)
          for (int64_t w = left; w < left + p->window_w; ++w)
            if (h >= 0 && h < p->height && w >= 0 && w < p->width)
              sum += x[(plane * p->height + h) * p->width + w], ++count;
        y[(plane * out_h + i) * out_w + j] =
            sum / (float)(p->counts_padding ? p->window_h * p->window_w : count);
      }
}
int stepladder_supports_average_pool(const stepladder_pooling_problem* p) {
  return p->direction == 0;
}
void stepladder_sgd_update(const stepladder_sgd_update_problem* p, float* w, const float* g,
                           float* v, float*, float rate, int64_t) {
  for (int64_t i = 0; i < p->count; ++i) {
    const float decayed = p->weight_decay == 0 ? g[i] : g[i] + p->weight_decay * w[i];
    if (p->optimizer == 1) v[i] = p->momentum * v[i] + decayed;
    w[i] -= rate * (p->optimizer == 1 ? v[i] : decayed);
  }
}
int stepladder_supports_sgd_update(const stepladder_sgd_update_problem* p) {
  return p->optimizer <= 1;
}
"""
SGEMM = """
extern "C" void cblas_sgemm(int, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                            int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l)
        sum += (ta == 111 ? a[i * lda + l] : a[l * lda + i]) *
               (tb == 111 ? b[l * ldb + j] : b[j * ldb + l]);
      c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
    }
}
"""


def bench(stepladder, run, library, *variants, **expected):
    return stepladder("bench", "matmul", "--shape", "8x24x16", "--variant", ",".join(variants),
                      "--plugin", library, "--threads", "1", "--budget", "0.01", "--quiet",
                      "--out", run, **expected)


def test_a_plugin_has_a_row_like_any_rung(stepladder, shared_object, tmp_path):
    library = shared_object(RIGHT)
    bench(stepladder, tmp_path / "run", library, "mine", "serial_ijk")
    rows = {row["variant"]: row for row in read_csv(tmp_path / "run/summary.csv")}
    assert rows["mine"]["status"] == "ok" and rows["mine"]["builds_on"] == "serial_ijk"
    assert str(library) in rows["mine"]["reason"]
    assert f"--plugin {library}" in rows["mine"]["repeat_command"]


def test_every_function_of_a_file_is_verified(stepladder, shared_object):
    done = stepladder("verify", "average_pool", "sgd_update", "--plugin", shared_object(OTHERS),
                      "--variant", "mine", "--random", "60", "--threads", "1")
    for primitive in ("average_pool", "sgd_update"):
        passed = re.search(rf"^{primitive} .* (\d+) checks passed, 0 failed, (\d+) unavailable",
                           done.stdout, re.M)
        assert int(passed[1]) > 20 and int(passed[2]) > 20, done.stdout


def test_a_wrong_plugin_fails(stepladder, shared_object):
    done = stepladder("verify", "matmul", "--plugin", shared_object(LOOP % "p->k - p->k % 2"),
                      "--variant", "mine", "--random", "20", status=1)
    failed = re.findall(r"^FAILED (.* mine random.*, 1 thread: c\[\d+, \d+\] is .*)$",
                        done.stdout, re.M)
    [smallest] = re.findall(r"^SMALLEST that failed: (.*)$", done.stdout, re.M)
    assert len(failed) > 1 and smallest in failed


def test_a_plugin_that_crashes_costs_its_row_only(stepladder, shared_object, tmp_path):
    bench(stepladder, tmp_path / "run", shared_object(CRASHES), "mine", "serial_ijk", status=1)
    rows = {row["variant"]: row for row in read_csv(tmp_path / "run/summary.csv")}
    assert rows["mine"]["status"] == "failed" and rows["serial_ijk"]["status"] == "ok"


def test_problems_that_it_does_not_support_are_unavailable(stepladder, shared_object):
    done = stepladder("verify", "matmul", "--plugin", shared_object(NO_TRANSPOSES), "--variant",
                      "mine", "--shape", "4x4x4 transpose_a=1", "--threads", "1", status=4)
    assert "1 unavailable" in done.stdout


def test_a_library_with_sgemm_is_a_rung_of_matmul(stepladder, shared_object):
    library = shared_object(SGEMM, "libfast.so.3")
    done = stepladder("verify", "matmul", "--blas", library, "--variant", "blas_fast", "--random",
                      "40")
    assert re.search(r"^matmul .* [1-9]\d* checks passed, 0 failed", done.stdout, re.M)


# As MKL does with its parts.
MAKES_ITSELF_GLOBAL = """
#include <dlfcn.h>
extern "C" float factor() { return 3; }
__attribute__((constructor)) void make_global() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&factor), &info);
  dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}
""" + SGEMM
CALLS_ITS_OWN = 'extern "C" float factor() { return 1; }\n' + SGEMM.replace("alpha * sum",
                                                                          "factor() * sum")


@pytest.mark.without_sanitizers("RTLD_DEEPBIND is forbidden")
def test_a_library_calls_its_own_functions_beside_others_of_that_name(stepladder, shared_object):
    first, second = (shared_object(source, f"lib{name}.so") for name, source in
                     (("a", MAKES_ITSELF_GLOBAL), ("b", CALLS_ITS_OWN)))
    stepladder("verify", "matmul", "--blas", first, "--blas", second, "--variant", "blas_a,blas_b",
               "--random", "40")


@pytest.mark.parametrize("option, name, source, message", [
    ("--plugin", "libserial_ijk.so", RIGHT, "matmul has a rung serial_ijk already"),
    ("--plugin", "libMy-kernel.so", RIGHT,
     "expected a file named like lib<rung>.so, of a-z, 0-9 and _"),
    ("--plugin", "libmine.so", "void matmul() {}",
     "no function of bench/plugin.h, such as stepladder_matmul"),
    ("--blas", "libmine.so", RIGHT, "has no function cblas_sgemm"),
])
def test_a_file_that_is_no_plugin_is_refused(stepladder, shared_object, option, name, source,
                                             message):
    library = shared_object(source, name)
    stepladder("verify", "matmul", option, library, status=1, error=(message, str(library)))


def test_a_missing_file_is_named(stepladder, tmp_path):
    done = stepladder("bench", "matmul", "--plugin", tmp_path / "libnone.so", status=1,
                      error="libnone.so")
    assert not done.stdout
