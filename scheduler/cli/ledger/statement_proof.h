// Is a statement what a ledger said when it was made? Its entry must stand in the chain with its
// hash, and the bill made anew from the entries up to there must be the same in every figure.
//
// What the hash covers cannot be changed in the file without changing the hash; so whoever keeps a
// statement can tell later whether the ledger still says what it was paid by. Rules of the ledger
// itself are `ledger verify`'s.
//
// Thread rule: one thread. Cost: that of the bill, twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/ledger/reader.h"

namespace tranche {

struct StatedBill {
  ledger::BillQuery query;  // as of the statement's entry
  std::string hash;
  Json statement;  // all of it
};
// Errors: InvalidArgument naming the field, what was expected and what was found.
absl::StatusOr<StatedBill> ReadStatedBill(std::string_view text);

struct StatementProof {
  std::vector<std::string> faults;  // a line each; empty: it is proven
  std::string proven;               // the sentence that says so
  std::vector<std::string> since;   // what later entries have changed of the span, a line each
};
// Errors: of the reader.
absl::StatusOr<StatementProof> ProveStatement(ledger::Reader& reader, const StatedBill& stated);

}  // namespace tranche
