#include "topology/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tranche {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

void CheckFailed(const char* file, int line, const char* condition, const std::string& left,
                 const std::string& right) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s and %s)\n", file, line, condition, left.c_str(),
               right.c_str());
  std::abort();
}

}  // namespace tranche
