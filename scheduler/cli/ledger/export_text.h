// A ledger's intervals as lines for spreadsheets and programs.
//
// CSV after RFC 4180; a text that a spreadsheet would take for a formula gets an apostrophe before
// it. Pure functions, any thread.
#pragma once

#include <string>

#include "scheduler/ledger/reader.h"

namespace tranche {

// Of one model of the interval: the members of the JSON are the titles of the CSV.
std::string ExportedJson(const ledger::ExportRow& row);
std::string ExportedCsv(const ledger::ExportRow& row);
std::string ExportedCsvTitles();

}  // namespace tranche
