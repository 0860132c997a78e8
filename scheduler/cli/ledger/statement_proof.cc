#include "scheduler/cli/ledger/statement_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/api/ledger_json.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr int64_t kVersion = 1;
constexpr std::size_t kMostFaults = 20;
constexpr std::size_t kHashDigits = 64;

absl::Status Expected(const char* where, const char* what, const Json& found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", where, what, found.dump()));
}

// The member at a JSON pointer; null where there is none.
const Json& At(const Json& root, const char* pointer) {
  static const Json kNone;
  const Json::json_pointer path(pointer);
  return root.contains(path) ? root.at(path) : kNone;
}

absl::StatusOr<Instant> TimeAt(const Json& root, const char* pointer) {
  const Json& value = At(root, pointer);
  const std::optional<Instant> time =
      value.is_string() ? wire::ParseTime(value.get_ref<const std::string&>()) : std::nullopt;
  if (!time) return Expected(pointer, "a time as RFC 3339", value);
  return *time;
}

// What differs, a line for each value.
std::vector<std::string> Differences(const Json& before, const Json& after, const char* first,
                                     const char* second) {
  std::vector<std::string> lines;
  for (const Json& change : Json::diff(before, after)) {
    const std::string path = change.at("path").get<std::string>();
    const Json::json_pointer pointer(path);
    const auto text = [&pointer](const Json& side) {
      return side.contains(pointer) ? side.at(pointer).dump() : std::string("nothing");
    };
    lines.push_back(
        fmt::format("{}: {} {}, {} {}", path, first, text(before), second, text(after)));
    if (lines.size() == kMostFaults) break;
  }
  return lines;
}

absl::StatusOr<Json> Made(ledger::Reader& reader, const StatedBill& stated,
                          const ledger::ChainPoint& point, std::optional<int64_t> as_of) {
  ledger::BillQuery query = stated.query;
  query.as_of = as_of;
  TRANCHE_ASSIGN_OR_RETURN(ledger::Bill bill, reader.MakeBill(query));
  return Json::parse(StatementJson({point, std::move(bill)}));
}

}  // namespace

absl::StatusOr<StatedBill> ReadStatedBill(std::string_view text) {
  StatedBill stated;
  stated.statement = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json& root = stated.statement;
  if (!root.is_object()) {
    return absl::InvalidArgumentError("expected a statement of `ledger statement`, found no JSON");
  }
  if (const Json& version = At(root, "/statement"); version != Json(kVersion)) {
    return Expected("/statement", "1, the only version there is", version);
  }
  const Json& entry = At(root, "/ledger/entry");
  if (!entry.is_number_integer() || entry.get<int64_t>() <= 0) {
    return Expected("/ledger/entry", "the number of an entry", entry);
  }
  stated.query.as_of = entry.get<int64_t>();
  const Json& hash = At(root, "/ledger/hash");
  if (!hash.is_string() || hash.get_ref<const std::string&>().size() != kHashDigits) {
    return Expected("/ledger/hash", "64 hexadecimal digits", hash);
  }
  stated.hash = hash.get<std::string>();
  TRANCHE_ASSIGN_OR_RETURN(stated.query.from, TimeAt(root, "/bill/from"));
  TRANCHE_ASSIGN_OR_RETURN(stated.query.to, TimeAt(root, "/bill/to"));
  const Json& by = At(root, "/bill/by");
  const std::optional<ledger::BillGroup> known =
      by.is_string() ? ledger::ParseBillBy(by.get_ref<const std::string&>()) : std::nullopt;
  if (!known) return Expected("/bill/by", std::string(ledger::kBillByWords).c_str(), by);
  stated.query.by = *known;
  return stated;
}

absl::StatusOr<StatementProof> ProveStatement(ledger::Reader& reader, const StatedBill& stated) {
  StatementProof proof;
  const int64_t entry = *stated.query.as_of;
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<ledger::ChainPoint> point, reader.PointAt(entry));
  if (!point || point->hash != stated.hash) {
    proof.faults.push_back(
        fmt::format("expected entry {} with hash {}, of which the statement speaks, found {}: it "
                    "is of another ledger, or this one was put back or rewritten",
                    entry, stated.hash, point ? point->hash : "no such entry"));
    return proof;
  }
  TRANCHE_ASSIGN_OR_RETURN(const Json then, Made(reader, stated, *point, entry));
  proof.faults = Differences(stated.statement, then, "the statement says", "the ledger said");
  if (!proof.faults.empty()) return proof;
  const Json& bill = then.at("bill");
  proof.proven = fmt::format(
      "proven: entry {} stands in the chain with hash {}, and by {} from {} to {} the fleet cost "
      "{}{}{}",
      entry, stated.hash, Text(bill, "by"), Text(bill, "from"), Text(bill, "to"),
      Text(bill.at("fleet"), "cost"), bill.at("currency").is_null() ? "" : " ",
      bill.at("currency").is_null() ? "" : Text(bill, "currency"));
  TRANCHE_ASSIGN_OR_RETURN(const Json now, Made(reader, stated, *point, std::nullopt));
  proof.since = Differences(then, now, "the ledger said", "says now");
  return proof;
}

}  // namespace tranche
