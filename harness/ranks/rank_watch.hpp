// Ends a run over several ranks when one of them hangs. Each rank keeps its position, a count of
// the calls in which all ranks meet, in a table that the ranks of its host share. A thread of each
// rank looks at its position now and then. When the rank waits too long, the thread names the rank
// that is behind and ends the process, and the launcher ends the others.
//
// The thread calls no MPI. A call costs the main thread a few stores.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>

namespace stepladder {

class RankWatch {
 public:
  // Where a rank waits for the others; `named` has its name in the table.
  enum Place : int {
    elsewhere,
    barrier,
    maximum,
    comparison,
    broadcast_of_rank_0,
    finalize,
    named
  };

  // A line of the table, which several processes map. All zeros: not in use.
  struct Row {
    static constexpr std::size_t longest_name = 100;
    alignas(64) std::atomic<int> process;  // its id
    std::atomic<int> rank;
    std::atomic<int> reported;            // in the first line: a rank has printed the reason
    std::atomic<int> place;               // a Place
    std::atomic<std::uint64_t> position;  // odd in a call, even between two calls
    std::array<std::atomic<char>, longest_name + 1> name;  // of the last named call
  };

  // The table of a host: made by one of its ranks, and opened by the others with the number of that
  // process and its file. They are never unmapped: the thread may need them to the end.
  struct Table {
    std::span<Row> rows;
    int file = -1;
  };
  static Table make_table(int lines);
  static std::span<Row> open_table(int lines, int process, int file);  // empty: it cannot be opened

  // The variable STEPLADDER_RANK_TIMEOUT, in seconds; 60 by default. 0: nothing is watched. Throws
  // std::runtime_error for other values.
  static double limit_from_environment();

  // `rows[row]` is the line of this rank.
  RankWatch(int rank, int ranks, int hosts, double limit_seconds, std::span<Row> rows,
            std::size_t row);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // During its life the main thread is in a call where it may wait for other ranks, at most the
  // expected seconds and the limit. Calls may be nested.
  class Call {
   public:
    Call(RankWatch* watch, Place place);  // `watch` may be null
    Call(RankWatch* watch, const std::string& name, double expected_seconds);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    void enter(Place place, double expected_seconds);
    void advance(Row& own) const;

    RankWatch* watch_;
    int outer_place_ = elsewhere;
    double outer_seconds_ = 0;
  };

 private:
  void look();  // the thread
  std::string reason(double seconds) const;
  [[noreturn]] void end_run(double seconds);

  const int rank_, ranks_, hosts_;
  const double limit_;
  const std::span<Row> rows_;
  Row& own_;
  std::atomic<double> expected_ = 0;  // seconds of the present call

  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace stepladder
