// Checks of error messages.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "harness/io/nearest.hpp"

namespace stepladder {

// The message of the std::runtime_error that `action` throws; empty if it throws none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// The first suggestion of the UnknownName that `action` throws; empty if it throws none.
template <class Action>
std::string suggestion_of(Action action) {
  try {
    action();
  } catch (const UnknownName& error) {
    return error.suggestions().empty() ? "" : error.suggestions().front();
  }
  return "";
}

// Whether `message` contains all `parts`.
inline testing::AssertionResult says(const std::string& message,
                                     std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    if (message.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "'" << part << "' is not in '" << message << "'";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace stepladder
