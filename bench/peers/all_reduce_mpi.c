/* Measures the all-reduce of one communication library: the sum of floats, out of place. Compiled
 * with the mpicc of each MPI library; with -DONECCL the sum is oneCCL's (all_reduce_oneccl.cpp) and
 * MPI starts the ranks.
 *
 *     all_reduce_mpi CACHE_BYTES REPETITIONS BUDGET_SECONDS COUNT...
 *
 * As in `stepladder bench --cold`: pairs of buffers rotate through twice the last-level cache,
 * every repetition starts after a barrier and counts the slowest rank, and the iterations of a
 * repetition fill its share of the budget. Rank 0 prints CSV: one line of the library's version,
 * then for each count: count,verified,iterations,seconds;seconds;... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef ONECCL
void oneccl_start(int rank, int ranks, char* version, int length);
void oneccl_all_reduce(const float* input, float* output, size_t count);
void oneccl_end(void);
#endif

static int rank, ranks;

static void all_reduce(const float* input, float* output, long count) {
#ifdef ONECCL
  oneccl_all_reduce(input, output, (size_t)count);
#else
  MPI_Allreduce(input, output, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
#endif
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double max_over_ranks(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

static long clamp(double value, long least, long most) {
  return value < (double)least ? least : value > (double)most ? most : (long)value;
}

/* Aligned to cache lines, from 4 MiB on to huge pages. */
static float* allocate(long count) {
  const size_t huge = (size_t)2 << 20, bytes = (size_t)(count > 0 ? count : 1) * sizeof(float);
  const size_t unit = bytes >= 2 * huge ? huge : 64;
  const size_t whole = (bytes + unit - 1) / unit * unit;
  void* memory = aligned_alloc(unit, whole);
  if (memory == NULL) {
    fprintf(stderr, "all_reduce_mpi: no memory for %ld floats\n", count);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (unit == huge) madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}

/* Small integers, so that every sum is exact. */
static float value(int of_rank, long i) { return (float)((i * 7 + (long)of_rank * 13) % 33 - 16); }

static int is_sum(const float* output, long count) {
  for (long i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value(r, i);
    if (output[i] != sum) return 0;
  }
  return 1;
}

static void measure(long count, double cache, int repetitions, double budget) {
  const double bytes = 2.0 * (double)(count > 0 ? count : 1) * sizeof(float);
  const long pairs = clamp(2.0 * cache / bytes, 2, 4096);
  float** input = malloc((size_t)pairs * sizeof *input);
  float** output = malloc((size_t)pairs * sizeof *output);
  for (long p = 0; p < pairs; ++p) {
    input[p] = allocate(count);
    output[p] = allocate(count);
    for (long i = 0; i < count; ++i) input[p][i] = value(rank, i);
    memset(output[p], 0xff, (size_t)count * sizeof(float));
  }

  all_reduce(input[0], output[0], count);
  int verified = is_sum(output[0], count);
  memset(output[0], 0xff, (size_t)count * sizeof(float));

  double start, estimate = 1e9;
  for (int i = 0; i < 3; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    all_reduce(input[0], output[0], count);
    const double seconds = max_over_ranks(now() - start);
    if (seconds < estimate) estimate = seconds;
  }
  if (estimate < 1e-8) estimate = 1e-8;
  const long iterations = clamp(budget / repetitions / estimate, 1, 1000000);
  const long planned = clamp(budget / ((double)iterations * estimate) + 0.5, 2, repetitions);

  double* seconds = malloc((size_t)planned * sizeof *seconds);
  long next = 0;
  for (long r = 0; r < planned; ++r) {
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    for (long i = 0; i < iterations; ++i, next = (next + 1) % pairs)
      all_reduce(input[next], output[next], count);
    seconds[r] = max_over_ranks(now() - start) / (double)iterations;
  }
  verified = verified && is_sum(output[(next + pairs - 1) % pairs], count);
  MPI_Allreduce(MPI_IN_PLACE, &verified, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%ld,%s,%ld,", count, verified ? "yes" : "no", iterations);
    for (long r = 0; r < planned; ++r) printf("%s%.9g", r > 0 ? ";" : "", seconds[r]);
    printf("\n");
    fflush(stdout);
  }
  for (long p = 0; p < pairs; ++p) {
    free(input[p]);
    free(output[p]);
  }
  free(input);
  free(output);
  free(seconds);
}

int main(int count, char** arguments) {
  if (count < 5) {
    fprintf(stderr, "usage: all_reduce_mpi CACHE_BYTES REPETITIONS BUDGET_SECONDS COUNT...\n");
    return 2;
  }
#ifdef ONECCL
  int provided;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
#else
  MPI_Init(&count, &arguments);
#endif
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
#ifdef ONECCL
  oneccl_start(rank, ranks, version, (int)sizeof version);
#endif
  for (char* c = version; *c != '\0'; ++c)
    if (*c == '\n' || *c == ',') *c = ' ';
  if (rank == 0) printf("version,%d,%s\n", ranks, version);
  for (int a = 4; a < count; ++a)
    measure(atol(arguments[a]), atof(arguments[1]), atoi(arguments[2]), atof(arguments[3]));
#ifdef ONECCL
  oneccl_end();
#endif
  MPI_Finalize();
  return 0;
}
