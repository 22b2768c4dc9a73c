#include "simulation/calls.hpp"

#include <mpi.h>

#include <simgrid/s4u/Actor.hpp>
#include <utility>
#include <vector>

#include "kernels/all_reduce/mpi/reduce.hpp"
#include "simulation/arithmetic.hpp"

namespace {

std::int64_t messages = 0;

void count_message(int to) {
  if (to != MPI_PROC_NULL) ++messages;
}

// Ranks that wait in MPI_Probe. Each MPI_Isend wakes them.
std::int64_t sends = 0;
std::vector<simgrid::s4u::ActorPtr> waiting;

// The addition inside a collective operation: it takes simulated time, like that of a rung.
void simulated_sum(void* in, void* in_out, int* length, MPI_Datatype* /*type*/) {
  const auto* a = static_cast<const float*>(in);
  auto* b = static_cast<float*>(in_out);
  stepladder::all_reduce::add(a, b, b, *length);
}

}  // namespace

std::int64_t stepladder::simulation::messages_sent() { return messages; }

extern "C" {

int __real_MPI_Send(const void* values, int count, MPI_Datatype type, int to, int tag,
                    MPI_Comm communicator);
int __wrap_MPI_Send(const void* values, int count, MPI_Datatype type, int to, int tag,
                    MPI_Comm communicator) {
  count_message(to);
  return __real_MPI_Send(values, count, type, to, tag, communicator);
}

int __real_MPI_Isend(const void* values, int count, MPI_Datatype type, int to, int tag,
                     MPI_Comm communicator, MPI_Request* request);
int __wrap_MPI_Isend(const void* values, int count, MPI_Datatype type, int to, int tag,
                     MPI_Comm communicator, MPI_Request* request) {
  count_message(to);
  const int status = __real_MPI_Isend(values, count, type, to, tag, communicator, request);
  ++sends;
  for (const simgrid::s4u::ActorPtr& rank : std::exchange(waiting, {})) rank->resume();
  return status;
}

// SimGrid's polls, and takes simulated time for it.
int __wrap_MPI_Probe(int from, int tag, MPI_Comm communicator, MPI_Status* status) {
  for (;;) {
    const std::int64_t before = sends;
    int found = 0;
    MPI_Iprobe(from, tag, communicator, &found, status);
    if (found != 0) return MPI_SUCCESS;
    if (sends != before) continue;
    waiting.emplace_back(simgrid::s4u::Actor::self());
    simgrid::s4u::this_actor::suspend();
  }
}

int __real_MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                        void* in, int in_count, MPI_Datatype in_type, int from, int in_tag,
                        MPI_Comm communicator, MPI_Status* status);
int __wrap_MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                        void* in, int in_count, MPI_Datatype in_type, int from, int in_tag,
                        MPI_Comm communicator, MPI_Status* status) {
  count_message(to);
  return __real_MPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                             in_tag, communicator, status);
}

int __real_MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm communicator);
int __wrap_MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm communicator) {
  if (stepladder::simulation::arithmetic().computes || type != MPI_FLOAT || op != MPI_SUM)
    return __real_MPI_Allreduce(in, out, count, type, op, communicator);
  MPI_Op sum;
  MPI_Op_create(simulated_sum, /*commute=*/1, &sum);
  const int status = __real_MPI_Allreduce(in, out, count, type, sum, communicator);
  MPI_Op_free(&sum);
  return status;
}

// SimGrid's nonblocking collective operations exchange whole vectors between all ranks, as no MPI
// library does. Their callers wait at once, so the blocking ones stand in for them.
int __wrap_MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm communicator, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return __wrap_MPI_Allreduce(in, out, count, type, op, communicator);
}

int __wrap_MPI_Ibcast(void* values, int count, MPI_Datatype type, int root, MPI_Comm communicator,
                      MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return MPI_Bcast(values, count, type, root, communicator);
}

int __wrap_MPI_Iallgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out,
                           const int* counts, const int* offsets, MPI_Datatype type,
                           MPI_Comm communicator, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return MPI_Allgatherv(in, in_count, in_type, out, counts, offsets, type, communicator);
}

}  // extern "C"
