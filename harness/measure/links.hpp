// Measures what messages, additions and copies cost on the ranks of this run: the terms of the cost
// model of the variants over MPI.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "harness/measure/ceilings.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// At most so many copies of cold operands take turns; short ones stay in the caches.
inline constexpr double most_copies = 4096;

// Collective over all ranks of the session; takes a few seconds. Vectors rotate as the operands of
// a row do, but for the shortest: through twice the `cache_per_rank` bytes of the last-level cache.
// A length is left out once a message takes longer than half a second. Without MPI, or with one
// rank, every curve is empty.
Links measure_links(std::size_t cache_per_rank);

// As in links.json: curves are lists of [bytes, seconds].
nlohmann::json as_json(const Links& links);
// Of each point of each curve. measurements: not empty.
Links median_of(const std::vector<Links>& measurements);

// Bits per second of a link below which `compressed` is predicted to be faster than every exact
// rung of all_reduce that sends messages: one link of that rate and the measured latency between
// any two ranks, additions and copies as measured. 0 if it is faster at no rate from 1 Mbit/s to
// 10 Tbit/s.
double break_even_rate(detail::CostFunction compressed, double ranks, double bytes,
                       const Links& links);

// Lower bound of an all-reduce of n bytes, operands not in cache.
// On one host: `memory_bound`, every rank reads and writes n bytes, 2 p n bytes in all, at the rate
// at which all ranks copy at the same time. On h hosts: `bandwidth_bound`, every host sends
// 2 (h-1)/h n bytes at the rate of the longest measured message.
Roof all_reduce_roof(double bytes, int hosts, const Links& links);

}  // namespace stepladder
