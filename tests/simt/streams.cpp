#include "tests/simt/streams.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/simt/multiprocessor.hpp"

namespace stepladder::simt {

struct Stream {
  struct Operation {
    std::function<void()> work;
    const Event* event = nullptr;  // whose record number `ticket` must have completed
    std::uint64_t ticket = 0;
    bool is_ready() const { return event == nullptr || event->reached >= ticket; }
  };
  int device;
  std::deque<Operation> waiting{};
};

namespace {

int deferring = 0;  // number of DeferredStreams objects
std::vector<std::unique_ptr<Stream>> streams;

struct Capture {
  Stream* stream = nullptr;
  std::unique_ptr<Graph> graph{};                // null once it is invalidated
  std::vector<const GraphNode*> dependencies{};  // of the next node
} capture;

// Runs operations of random streams until is_done().
template <class IsDone>
void run_until(const IsDone& is_done) {
  while (!is_done()) {
    std::vector<Stream*> ready;
    for (const auto& stream : streams)
      if (!stream->waiting.empty() && stream->waiting.front().is_ready())
        ready.push_back(stream.get());
    const auto clear_streams = [] {
      for (const auto& stream : streams) stream->waiting.clear();
    };
    if (ready.empty()) {
      clear_streams();
      throw SimtError("deadlock: streams wait for each other");
    }
    Stream* stream = ready[draw(ready.size())];
    const Stream::Operation operation = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    try {
      operation.work();
    } catch (...) {
      clear_streams();
      throw;
    }
  }
}

void submit(Stream* stream, Stream::Operation operation) {
  stream->waiting.push_back(std::move(operation));
  if (deferring == 0) finish_streams();
}

// Submits work now or, if the stream is being captured, at each launch of the graph.
void submit_or_capture(Stream* stream, std::function<void(Stream*)> submit_work) {
  if (!is_captured(stream))
    submit_work(stream);
  else if (capture.graph != nullptr)
    capture.dependencies = {capture.graph->nodes
                                .emplace_back(std::make_shared<GraphNode>(
                                    std::move(submit_work), std::move(capture.dependencies)))
                                .get()};
}

}  // namespace

DeferredStreams::DeferredStreams() { ++deferring; }
DeferredStreams::~DeferredStreams() { --deferring; }

Stream* new_stream(int device) {
  return streams.emplace_back(std::make_unique<Stream>(Stream{device})).get();
}

int device_of(const Stream* stream) { return stream->device; }

void enqueue(Stream* stream, std::function<void()> work) {
  submit_or_capture(stream, [work = std::move(work)](Stream* to) { submit(to, {work}); });
}

void record(Event* event, Stream* stream) {
  submit_or_capture(stream, [event](Stream* to) {
    submit(to, {[event, ticket = ++event->recorded] {
             event->reached = std::max(event->reached, ticket);
             const auto now = std::chrono::steady_clock::now().time_since_epoch();
             event->seconds = std::chrono::duration<double>(now).count();
           }});
  });
}

void wait_for_event(Stream* stream, Event* event) {
  submit_or_capture(stream, [event](Stream* to) { submit(to, {[] {}, event, event->recorded}); });
}

void finish(const Stream* stream) {
  run_until([&] { return stream->waiting.empty(); });
}

void finish(const Event* event) {
  run_until([event, ticket = event->recorded] { return event->reached >= ticket; });
}

void finish_streams() {
  run_until([] {
    return std::all_of(streams.begin(), streams.end(),
                       [](const auto& stream) { return stream->waiting.empty(); });
  });
}

void begin_capture(Stream* stream) { capture = {stream, std::make_unique<Graph>()}; }

bool is_captured(const Stream* stream) { return capture.stream == stream; }

const std::vector<const GraphNode*>& capture_dependencies(const Stream* stream) {
  static const std::vector<const GraphNode*> none;
  return is_captured(stream) ? capture.dependencies : none;
}

bool set_capture_dependencies(Stream* stream, std::vector<const GraphNode*> nodes) {
  if (!is_captured(stream) || capture.graph == nullptr) return false;
  const auto& all = capture.graph->nodes;
  const bool all_known = std::all_of(nodes.begin(), nodes.end(), [&](const GraphNode* node) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.get() == node; });
  });
  if (!all_known || std::set(nodes.begin(), nodes.end()).size() != nodes.size()) return false;
  capture.dependencies = std::move(nodes);
  return true;
}

std::unique_ptr<Graph> end_capture(Stream*) { return std::exchange(capture, {}).graph; }

bool invalidate_capture() {
  capture.graph = nullptr;
  return capture.stream != nullptr;
}

void launch(const Graph& graph, Stream* stream) {
  std::vector<const GraphNode*> waiting;
  for (const auto& node : graph.nodes) waiting.push_back(node.get());
  std::set<const GraphNode*> done;
  while (!waiting.empty()) {
    const auto ready = std::partition(waiting.begin(), waiting.end(), [&](const GraphNode* node) {
      return !std::all_of(node->dependencies.begin(), node->dependencies.end(),
                          [&](const GraphNode* other) { return done.contains(other); });
    });
    const auto next =
        ready + static_cast<std::ptrdiff_t>(draw(static_cast<std::size_t>(waiting.end() - ready)));
    (*next)->submit(stream);
    done.insert(*next);
    waiting.erase(next);
  }
}

}  // namespace stepladder::simt
