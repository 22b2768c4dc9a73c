// Streams and events of several devices. What is asked of a stream is done at once, in one of the orders
// that CUDA allows; while there is a DeferredStreams it is done when somebody waits, and the streams take
// turns at random, each in its own order and held by the events that it waits for. What lacks an event
// then goes wrong.
#pragma once

#include <cstdint>
#include <functional>

namespace stepladder::simt {

struct Stream;

struct Event {
  int device;
  std::uint64_t recorded = 0;  // how often this was asked for
  std::uint64_t reached = 0;   // which of them is done
  double seconds = 0;
};

class DeferredStreams {
 public:
  DeferredStreams();
  ~DeferredStreams();
  DeferredStreams(const DeferredStreams&) = delete;
  DeferredStreams& operator=(const DeferredStreams&) = delete;
};

Stream* new_stream(int device);
int device_of(const Stream* stream);
void enqueue(Stream* stream, std::function<void()> work);
void record(Event* event, Stream* stream);
void hold(Stream* stream, Event* event);  // until what was recorded last is reached
// Does all that waits in any stream. Throws what the work throws, and SimtError when streams wait for
// each other.
void finish_streams();

}  // namespace stepladder::simt
