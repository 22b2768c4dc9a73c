// The parts that both rungs in shared memory have.
#pragma once

#include <type_traits>

#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/shared_window/exchange.hpp"
#include "kernels/all_reduce/mpi/shared_window/one_host.hpp"
#include "kernels/all_reduce/mpi/window.hpp"

namespace stepladder::all_reduce::inline STEPLADDER_ISA {

// Vectors of this many bytes and more are stored past the caches.
inline constexpr std::int64_t streaming_bytes = 8 << 10;

// An exchange through a window of the plan. Collective.
class SharedExchange {
 public:
  SharedExchange(const Problem& problem, const Resources& resources, const ExchangeSizes& sizes)
      : problem_(problem),
        group_(problem, resources),
        window_(communicator_on_one_host(group_), Exchange::area_bytes(sizes)),
        exchange_(segments_of(window_), group_.rank(), sizes, patience_of(group_)) {}

  const Problem& problem() const { return problem_; }

  // Calls use(exchange, mean), where mean is a constant.
  template <class Use>
  void with_exchange(const Use& use) {
    if (problem_.operation == Operation::mean)
      use(exchange_, std::true_type{});
    else
      use(exchange_, std::false_type{});
  }

 private:
  Problem problem_;
  Group group_;
  Window window_;
  Exchange exchange_;
};

}  // namespace stepladder::all_reduce::inline STEPLADDER_ISA
