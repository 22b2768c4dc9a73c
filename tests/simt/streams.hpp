// Streams and events of several devices. By default, work runs as soon as it is submitted to a
// stream. While a DeferredStreams exists, work runs when the host waits: streams take turns at
// random, each in its own order, as far as the events for which they wait allow. A missing event
// then leads to wrong results. Work submitted to a stream that is being captured becomes nodes of a
// graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace stepladder::simt {

struct Stream;

struct Event {
  int device;
  std::uint64_t recorded = 0;  // number of records submitted
  std::uint64_t reached = 0;   // number of the last record that has completed
  double seconds = 0;          // time of that record
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
void wait_for_event(Stream* stream, Event* event);  // for its last record

// Run submitted work until a stream is empty, the last record of an event has completed, or all
// streams are empty. Other streams may advance meanwhile. They throw the exceptions of the work,
// and SimtError when streams wait for each other.
void finish(const Stream* stream);
void finish(const Event* event);
void finish_streams();

struct GraphNode {
  std::function<void(Stream*)> submit;         // to the stream on which the graph is launched
  std::vector<const GraphNode*> dependencies;  // nodes of the same graph, captured earlier
};
struct Graph {
  std::vector<std::shared_ptr<const GraphNode>> nodes;
};
void begin_capture(Stream* stream);
bool is_captured(const Stream* stream);
// The dependencies of the next captured node: at first none, then the last captured node.
const std::vector<const GraphNode*>& capture_dependencies(const Stream* stream);
// Replaces them. Returns false and does nothing unless the nodes are distinct and of this capture.
bool set_capture_dependencies(Stream* stream, std::vector<const GraphNode*> nodes);
// Null if the capture was invalidated.
std::unique_ptr<Graph> end_capture(Stream* stream);
// For calls that wait or allocate. Invalidates the capture in progress; false if there is none.
bool invalidate_capture();
// Submits the nodes in a random topological order.
void launch(const Graph& graph, Stream* stream);

}  // namespace stepladder::simt
