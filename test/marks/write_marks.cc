// Linked into test binaries: at their end the names of the marks they reached are appended to the
// file that TRANCHE_MARKS_FILE names. One write, so that processes side by side do not mix lines.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "topology/base/mark.h"

namespace tranche {
namespace {

struct WriteMarks {
  ~WriteMarks() {
    const char* const path = std::getenv("TRANCHE_MARKS_FILE");
    if (path == nullptr) return;
    std::string names;
    for (const CoverageMark* mark = CoverageMark::Last(); mark != nullptr; mark = mark->next()) {
      names += mark->name();
      names += '\n';
    }
    if (names.empty()) return;
    std::FILE* const file = std::fopen(path, "a");
    if (file == nullptr) return;
    std::setvbuf(file, nullptr, _IOFBF, names.size() + 1);
    std::fwrite(names.data(), 1, names.size(), file);
    std::fclose(file);
  }
};
const WriteMarks write_marks;

}  // namespace
}  // namespace tranche
