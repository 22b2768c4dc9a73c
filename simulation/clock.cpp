// Stands in for harness/training/clock.cpp.
#include "harness/training/clock.hpp"

#include <simgrid/s4u/Actor.hpp>
#include <simgrid/s4u/Engine.hpp>

namespace stepladder {

double training_clock() { return simgrid::s4u::Engine::get_clock(); }

void training_sleep(double seconds) { simgrid::s4u::this_actor::sleep_for(seconds); }

}  // namespace stepladder
