// Messages between the ranks of a training: MPI behind the few calls that the modes need. Without
// MPI there is one rank. A blocking call yields the core to other ranks while it waits, and the
// watch of the session ends the run when it waits too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepladder {

class Communicator {
 public:
  explicit Communicator(std::string name);  // of the mode, for the watch; all ranks of the session
  // Collective. The ranks with the same color form a group, in their present order.
  Communicator split(int color) const;
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Point to point. Messages between two ranks arrive in the order in which they were sent, and
  // have the length that the receiver expects.
  template <class T>
  void send(int to, std::span<const T> values) const {
    send_bytes(to, std::as_bytes(values));
  }
  template <class T>
  void receive(int from, std::span<T> values) const {
    receive_bytes(from, std::as_writable_bytes(values));
  }
  template <class T>
  void send(int to, const T& value) const {
    send(to, std::span<const T>(&value, 1));
  }
  template <class T>
  T receive(int from) const {
    T value;
    receive(from, std::span<T>(&value, 1));
    return value;
  }
  int await_message() const;  // from any rank; returns which

  // A message in flight. The values must stay where they are until it is done.
  class Transfer {
   public:
    Transfer();
    Transfer(Transfer&&) noexcept;
    Transfer& operator=(Transfer&&) noexcept;
    ~Transfer();  // waits
    bool done();  // and makes progress
    void wait();

   private:
    friend class Communicator;
    struct State;
    std::unique_ptr<State> state_;
  };
  Transfer start_send(int to, std::span<const float> values) const;
  Transfer start_receive(int from, std::span<float> values) const;

  // Collective: all ranks make the same calls in the same order.
  void broadcast(int root, std::span<float> values) const;
  void sum(std::span<float> values) const;  // over the ranks, on every rank
  void sum(std::span<double> values) const;
  void minimum(std::span<double> values) const;
  double maximum(double value) const;
  // Rank r has values [parts[r].from, parts[r].from + parts[r].count) of `all`; afterwards all
  // ranks have all parts.
  struct Part {
    std::int64_t from, count;
  };
  void gather(std::span<float> all, const std::vector<Part>& parts) const;
  // all: consecutive arrays, lengths[r] values for rank r. own: [lengths[rank]], their sum over the
  // ranks.
  void reduce_scatter(std::span<const float> all, const std::vector<std::int64_t>& lengths,
                      std::span<float> own) const;
  std::vector<std::string> texts(const std::string& own) const;  // of all ranks, on every rank

  // A call may wait for so many seconds beyond the limit of the watch. It grows only.
  void expect(double seconds) const { expected_ = seconds > expected_ ? seconds : expected_; }

 private:
  struct Handle;
  Communicator(std::string name, std::unique_ptr<Handle> handle);
  void send_bytes(int to, std::span<const std::byte> bytes) const;
  void receive_bytes(int from, std::span<std::byte> bytes) const;

  std::string name_;
  std::unique_ptr<Handle> handle_;  // null: one rank
  int rank_ = 0, ranks_ = 1;
  mutable double expected_ = 0;
};

}  // namespace stepladder
