// The time of a training. A simulated cluster has its own definitions: there it is simulated time.
#pragma once

namespace stepladder {

double training_clock();  // seconds since some moment
void training_sleep(double seconds);

}  // namespace stepladder
