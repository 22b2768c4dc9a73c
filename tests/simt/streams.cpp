#include "tests/simt/streams.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simt/multiprocessor.hpp"

namespace stepladder::simt {

struct Stream {
  struct Operation {
    std::function<void()> work;
    const Event* event = nullptr;  // that must have been reached before
    std::uint64_t ticket = 0;
    bool can_begin() const { return event == nullptr || event->reached >= ticket; }
  };
  int device;
  std::deque<Operation> waiting{};
};

namespace {

int deferring = 0;  // how many DeferredStreams there are
std::vector<std::unique_ptr<Stream>> streams;

void ask(Stream* stream, Stream::Operation operation) {
  stream->waiting.push_back(std::move(operation));
  if (deferring == 0) finish_streams();
}

}  // namespace

DeferredStreams::DeferredStreams() { ++deferring; }
DeferredStreams::~DeferredStreams() { --deferring; }

Stream* new_stream(int device) {
  return streams.emplace_back(std::make_unique<Stream>(Stream{device})).get();
}

int device_of(const Stream* stream) { return stream->device; }

void enqueue(Stream* stream, std::function<void()> work) { ask(stream, {std::move(work)}); }

void record(Event* event, Stream* stream) {
  ask(stream, {[event, ticket = ++event->recorded] {
        event->reached = std::max(event->reached, ticket);
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        event->seconds = std::chrono::duration<double>(now).count();
      }});
}

void hold(Stream* stream, Event* event) {
  ask(stream, {[] {}, event, event->recorded});
}

void finish_streams() {
  for (;;) {
    std::vector<Stream*> ready;
    bool all_done = true;
    for (const auto& stream : streams) {
      if (stream->waiting.empty()) continue;
      all_done = false;
      if (stream->waiting.front().can_begin()) ready.push_back(stream.get());
    }
    if (all_done) return;
    const auto give_up = [] {
      for (const auto& stream : streams) stream->waiting.clear();
    };
    if (ready.empty()) {
      give_up();
      throw SimtError("streams wait for each other for ever");
    }
    Stream* stream = ready[draw(ready.size())];
    const Stream::Operation operation = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    try {
      operation.work();
    } catch (...) {
      give_up();
      throw;
    }
  }
}

}  // namespace stepladder::simt
