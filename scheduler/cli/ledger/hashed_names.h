// Names of people's work replaced by keyed hashes, for files that leave the house.
//
// What has the same name has the same hash under one key, in every file, and without the key nobody
// can try out names. HMAC-SHA256 of what the name is of and the name, of which 80 bits are kept.
// Thread rule: any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/ledger/reader.h"

namespace tranche {

class HashedNames {
 public:
  // Of a file; line ends at its end are no part of the key. Errors: of reading it; InvalidArgument
  // for less than 16 bytes or more than 4,096.
  static absl::StatusOr<HashedNames> Read(const std::string& path);
  // "h" and 20 hexadecimal digits; empty stays empty. `of`: "team", "namespace", "pod", "uid",
  // "owner", "label", "container", "gang" or "object"; names of different things do not show that
  // they are equal.
  std::string Of(std::string_view of, std::string_view name) const;

 private:
  explicit HashedNames(std::string key) : key_(std::move(key)) {}
  std::string key_;
};

// Of the rows' keys, as the bill's `by` says what they are of: team, namespace, pod, owner (its
// kind stays) and values of a label. All other keys stay.
void HashKeys(const HashedNames& names, Json& bill);
// A record of devices (tranche.dev/allocation): its team and its containers. Null: it is no record.
Json HashedDevices(const HashedNames& names, std::string_view record);
// Pod, uid, namespace and team, also in the devices. Class, node and model stay.
ledger::ExportRow Hashed(const HashedNames& names, ledger::ExportRow row);

}  // namespace tranche
