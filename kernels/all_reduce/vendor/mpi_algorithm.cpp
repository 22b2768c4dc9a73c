#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

std::string cannot(const std::string& why) {
  return mpi_library() + " cannot be told which algorithm to use" + why;
}

#ifdef OPEN_MPI

constexpr const char* algorithm_variable = "coll_tuned_allreduce_algorithm";
constexpr const char* segment_variable = "coll_tuned_allreduce_algorithm_segmentsize";
constexpr const char* switch_variable = "coll_tuned_use_dynamic_rules";

// MPI_T stays initialized until the process ends: Open MPI opens all its components each time.
bool tool_interface_works() {
  static const bool works = [] {
    int provided = MPI_THREAD_SINGLE;
    return MPI_T_init_thread(MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS;
  }();
  return works;
}

class ControlVariable {
 public:
  explicit ControlVariable(const char* name) {
    int elements = 0;
    if (MPI_T_cvar_get_index(name, &index_) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index_, nullptr, &handle_, &elements) == MPI_SUCCESS)
      exists_ = elements == 1;
  }
  ~ControlVariable() {
    if (is_changed_) MPI_T_cvar_write(handle_, &before_);
    if (handle_ != MPI_T_CVAR_HANDLE_NULL) MPI_T_cvar_handle_free(&handle_);
  }
  ControlVariable(const ControlVariable&) = delete;
  ControlVariable& operator=(const ControlVariable&) = delete;

  bool exists() const { return exists_; }

  // Returns true if any byte of a variable of at most 8 bytes is set.
  bool is_set() const {
    std::uint64_t value = 0;
    return exists_ && MPI_T_cvar_read(handle_, &value) == MPI_SUCCESS && value != 0;
  }

  // Sets an int variable until this object is destroyed.
  bool set(int value) {
    int now = ~value;
    is_changed_ = exists_ && MPI_T_cvar_read(handle_, &before_) == MPI_SUCCESS &&
                  MPI_T_cvar_write(handle_, &value) == MPI_SUCCESS;
    return is_changed_ && MPI_T_cvar_read(handle_, &now) == MPI_SUCCESS && now == value;
  }

  // The value that its enumeration has for `name`.
  bool find(const char* name, int& value) const {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum names = MPI_T_ENUM_NULL;
    int length = 0, text = 0, verbosity = 0, binding = 0, scope = 0, count = 0;
    if (MPI_T_cvar_get_info(index_, nullptr, &length, &verbosity, &type, &names, nullptr, &text,
                            &binding, &scope) != MPI_SUCCESS ||
        type != MPI_INT || names == MPI_T_ENUM_NULL)
      return false;
    length = 0;
    if (MPI_T_enum_get_info(names, &count, nullptr, &length) != MPI_SUCCESS) return false;
    for (int i = 0; i < count; ++i) {
      char item[64] = "";
      int item_length = sizeof item;
      if (MPI_T_enum_get_item(names, i, &value, item, &item_length) == MPI_SUCCESS &&
          std::string(item) == name)
        return true;
    }
    return false;
  }

 private:
  int index_ = -1;
  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
  bool exists_ = false;
  bool is_changed_ = false;
  int before_ = 0;
};

// This rank's reason, or that another rank has one; empty if none has.
std::string reason_on_any_rank(const std::string& why, MPI_Comm communicator) {
  const int fails = why.empty() ? 0 : 1;
  int fails_somewhere = 0;
  MPI_Allreduce(&fails, &fails_somewhere, 1, MPI_INT, MPI_MAX, communicator);
  return fails_somewhere > fails ? cannot(" on another rank") : why;
}
#endif

}  // namespace

std::string mpi_library() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string first_words;
  for (const char c : std::string(version)) {
    if (c == ',' || c == '\n') break;
    const char next = c == '\t' ? ' ' : c;
    if (next != ' ' || (!first_words.empty() && first_words.back() != ' ')) first_words += next;
  }
  return first_words;
}

void mpi_allreduce(const Problem& problem, const Operands& o, MPI_Comm communicator) {
  for (std::int64_t at = 0; at < problem.count; at += longest_message) {
    const int length = static_cast<int>(std::min(longest_message, problem.count - at));
    const void* input = o.input == o.output ? MPI_IN_PLACE : o.input + at;
    MPI_Allreduce(input, o.output + at, length, MPI_FLOAT, MPI_SUM, communicator);
  }
  if (problem.operation == Operation::mean) divide(o.output, problem.count, problem.ranks);
}

#ifdef OPEN_MPI

MPI_Comm communicator_of_algorithm(MPI_Comm communicator, const char* algorithm,
                                   int segment_bytes) {
  const bool works = tool_interface_works();
  const ControlVariable dynamic_rules(switch_variable);
  ControlVariable algorithms(algorithm_variable), segments(segment_variable);
  int wanted = 0;
  std::string why;
  if (!works)
    why = cannot(": MPI_T does not start");
  else if (!algorithms.exists())
    why = cannot(": it has no control variable " + std::string(algorithm_variable));
  else if (!dynamic_rules.is_set())
    why = cannot(": " + std::string(switch_variable) + " is off");
  else if (!algorithms.find(algorithm, wanted))
    why = mpi_library() + " has no all-reduce algorithm " + algorithm;
  else if (!algorithms.set(wanted) || !segments.set(segment_bytes))
    why = cannot(": " + std::string(algorithm_variable) + " cannot be set");
  why = reason_on_any_rank(why, communicator);
  if (!why.empty()) throw Unsupported(why);
  MPI_Comm of_algorithm = MPI_COMM_NULL;
  MPI_Comm_dup(communicator, &of_algorithm);
  return of_algorithm;
}

#else

MPI_Comm communicator_of_algorithm(MPI_Comm, const char*, int) { throw Unsupported(cannot("")); }

#endif

}  // namespace stepladder::all_reduce
