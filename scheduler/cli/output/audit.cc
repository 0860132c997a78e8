#include "scheduler/cli/output/audit.h"

#include <fmt/format.h>

#include <ostream>

#include "scheduler/cli/output/table.h"

namespace tranche {
namespace {

void PrintNotes(const char* heading, const Json& notes, std::ostream& out) {
  if (notes.empty()) return;
  Table table({"KIND", "WHERE", "WHAT"});
  for (const Json& note : notes) {
    table.Add({Text(note, "kind"), Text(note, "where"), Text(note, "text")});
  }
  out << heading << '\n' << table.Text(TerminalOf(out));
}

}  // namespace

bool PrintAudit(const Json& audit, std::ostream& out) {
  const Json& faults = audit.at("faults");
  const Json& set_aside = audit.at("setAside");
  if (faults.empty() && set_aside.empty()) {
    out << "nothing found\n";
    return true;
  }
  PrintNotes("The books do not agree", faults, out);
  if (!faults.empty() && !set_aside.empty()) out << '\n';
  PrintNotes("Set aside", set_aside, out);
  if (const int64_t left_out = Whole(audit, "leftOut"); left_out > 0) {
    out << fmt::format("and {} more\n", left_out);
  }
  return false;
}

}  // namespace tranche
