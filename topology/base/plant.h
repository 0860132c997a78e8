// Faults that can be planted one at a time, to show that tests find them.
//
// TRANCHE_PLANTED(lost_bind_is_no_bind) stands where a right condition can be turned into a wrong
// one: `if (reserved || TRANCHE_PLANTED(...))`. It is the constant false in every build but one
// that was configured with -DTRANCHE_PLANTS=ON, which is for tests alone; there it is true while
// the environment's TRANCHE_PLANT has that name when the line is first reached. test/plants has the
// list, and what finds each.
//
// Any thread.
#pragma once

#ifdef TRANCHE_PLANTS

#include <cstdlib>
#include <cstring>

namespace tranche {

inline bool IsPlanted(const char* name) {
  const char* planted = std::getenv("TRANCHE_PLANT");  // NOLINT(concurrency-mt-unsafe): never set
  return planted != nullptr && std::strcmp(planted, name) == 0;
}

}  // namespace tranche

#define TRANCHE_PLANTED(name)                                \
  ([] {                                                      \
    static const bool planted = ::tranche::IsPlanted(#name); \
    return planted;                                          \
  }())

#else

#define TRANCHE_PLANTED(name) false

#endif
