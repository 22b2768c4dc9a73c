// Streams and events of several devices. What is asked of a stream is done at once, in one of the orders
// that CUDA allows; while there is a DeferredStreams it is done when somebody waits, and the streams take
// turns at random, each in its own order and held by the events that it waits for. What lacks an event
// then goes wrong. While a stream is being captured, what is asked of it is kept for a graph instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

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

// These do what waits until that is done which they wait for: all that a stream was asked for, or what an
// event was recorded after, or everything. Other streams may or may not get on meanwhile. They throw what
// the work throws, and SimtError when streams wait for each other.
void finish(const Stream* stream);
void finish(const Event* event);
void finish_streams();

struct GraphNode {
  std::function<void(Stream*)> asks;    // of the stream that the graph is launched on
  std::vector<const GraphNode*> after;  // of the same graph, captured before
};
struct Graph {
  std::vector<std::shared_ptr<const GraphNode>> nodes;
};
void begin_capture(Stream* stream);
bool is_captured(const Stream* stream);
// What is captured next comes after these: at first none, then the node captured last.
const std::vector<const GraphNode*>& last_captured(const Stream* stream);
// Other nodes in their place. False, and nothing done, unless they are different ones of this capture.
bool capture_after(Stream* stream, std::vector<const GraphNode*> nodes);
// Null when a call spoilt it.
std::unique_ptr<Graph> end_capture(Stream* stream);
// Whether some stream is being captured. It then cannot become a graph: the caller waits or allocates.
bool spoils_capture();
// In one of the orders that its nodes allow, drawn at random.
void launch(const Graph& graph, Stream* stream);

}  // namespace stepladder::simt
