// A bill, as the server's API tells it, for people and for spreadsheets.
//
// Pure but for writing to `out`; nlohmann's exceptions where the bill is of another form.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "scheduler/cli/output/json.h"

namespace tranche {

// A cell after RFC 4180, guarded against spreadsheets that run what looks like a formula.
std::string CsvText(std::string_view text);
// A table, and what is not in it; the exit code.
int PrintBill(const Json& bill, std::ostream& out);
// CSV with the column names of FOCUS 1.2, those that a cluster can tell.
void PrintFocus(const Json& bill, std::ostream& out);

}  // namespace tranche
