// The all-reduce of oneCCL for all_reduce_mpi.c, on the ranks that MPI has started.
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <oneapi/ccl.hpp>

namespace {
std::unique_ptr<ccl::communicator> communicator;
}

extern "C" void oneccl_start(int rank, int ranks, char* version, int length) {
  ccl::init();
  const auto found = ccl::get_library_version();
  std::snprintf(version, static_cast<std::size_t>(length), "oneCCL %u.%u.%u", found.major,
                found.minor, found.update);
  ccl::kvs::address_type address;
  std::shared_ptr<ccl::kvs> store;
  if (rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank != 0) store = ccl::create_kvs(address);
  communicator = std::make_unique<ccl::communicator>(ccl::create_communicator(ranks, rank, store));
}

extern "C" void oneccl_all_reduce(const float* input, float* output, std::size_t count) {
  ccl::allreduce(input, output, count, ccl::reduction::sum, *communicator).wait();
}

extern "C" void oneccl_end() { communicator.reset(); }
