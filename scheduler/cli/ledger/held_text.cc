#include "scheduler/cli/ledger/held_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <ostream>
#include <set>
#include <string>

#include "quota/tree/limits.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/words.h"

namespace tranche {
namespace {

// "2.250" as thousandths.
int64_t ThousandthsOf(const std::string& decimal) {
  std::string digits = decimal;
  std::erase(digits, '.');
  return std::stoll(digits);
}

std::string OrDash(const Json& row, const char* member) {
  std::string text = Text(row, member);
  return text.empty() ? "-" : text;
}

}  // namespace

int PrintHeld(const Json& held, std::ostream& out) {
  Table table({"NODE", "MODEL", "GPUS", "TEAM", "POD", "CLASS", "SINCE", "UNTIL"});
  std::set<std::string> pods;
  int64_t gpus = 0;
  for (const Json& row : held.at("rows")) {
    const std::string pod = fmt::format("{}/{}", Text(row, "namespace"), Text(row, "pod"));
    pods.insert(pod);
    const int64_t milli = ThousandthsOf(Text(row, "gpus"));
    gpus += milli;
    table.Add({OrDash(row, "node"), Text(row, "model"), Thousandths(milli), OrDash(row, "leaf"),
               pod, OrDash(row, "class"), Text(row, "since"),
               row.at("until").is_null() ? "still" : Text(row, "until")});
  }
  if (pods.empty()) {
    out << fmt::format("nobody held a GPU at {}\n", Text(held, "at"));
    return kExitDone;
  }
  out << table.Text(TerminalOf(out))
      << fmt::format("{} {} held {} {} at {}\n", pods.size(), pods.size() == 1 ? "pod" : "pods",
                     Thousandths(gpus), gpus == 1000 ? "GPU" : "GPUs", Text(held, "at"));
  return kExitDone;
}

}  // namespace tranche
