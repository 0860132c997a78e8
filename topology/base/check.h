// A broken promise between pieces of our own code: print it and stop the process.
//
// Never used for input from outside (that is an absl::Status) nor for "does not fit" (a value).
#pragma once

#include <cstdio>
#include <cstdlib>

#define TRANCHE_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
