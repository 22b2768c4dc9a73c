// What a command says when a rung crashes.
#pragma once

namespace stepladder {

// From now on a signal that ends the process names the rung that is verified, and for SIGILL the
// bytes of the instruction, on standard error.
void report_crashes();

}  // namespace stepladder
