#include "scheduler/cli/ledger/hashed_names.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "scheduler/embedded/text_file.h"
#include "topology/base/check.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr std::size_t kLeastKey = 16;
constexpr std::size_t kMostKey = 4096;
constexpr std::size_t kKeptBytes = 10;
constexpr std::string_view kByLabel = "label:";

// Both parts of "namespace/pod".
std::string HashedPod(const HashedNames& names, const std::string& key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string::npos) return names.Of("pod", key);
  return names.Of("namespace", key.substr(0, slash)) + "/" + names.Of("pod", key.substr(slash + 1));
}

// "namespace/Kind/name".
std::string HashedOwner(const HashedNames& names, const std::string& key) {
  const std::size_t first = key.find('/');
  const std::size_t second = first == std::string::npos ? first : key.find('/', first + 1);
  if (second == std::string::npos) return names.Of("owner", key);
  return names.Of("namespace", key.substr(0, first)) + key.substr(first, second - first + 1) +
         names.Of("owner", key.substr(second + 1));
}

std::string HashedKey(const HashedNames& names, const std::string& by, const std::string& key) {
  if (by == "team" || by == "namespace") return names.Of(by, key);
  if (by == "pod") return HashedPod(names, key);
  if (by == "owner") return HashedOwner(names, key);
  if (by.starts_with(kByLabel) && key != ledger::kOtherLabels) return names.Of("label", key);
  return key;
}

}  // namespace

absl::StatusOr<HashedNames> HashedNames::Read(const std::string& path) {
  TRANCHE_ASSIGN_OR_RETURN(std::string key, embedded::ReadTextFile(path, kMostKey, 0));
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  if (key.size() < kLeastKey) {
    return absl::InvalidArgumentError(fmt::format(
        "--hash-key: expected a key of {} bytes or more (openssl rand -hex 32), found {}, in {}",
        kLeastKey, key.size(), path));
  }
  return HashedNames(std::move(key));
}

std::string HashedNames::Of(std::string_view of, std::string_view name) const {
  if (name.empty()) return "";
  std::string text(of);
  text += '\0';
  text += name;
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* const done = HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                                         bytes, text.size(), hash.data(), &size);
  TRANCHE_CHECK(done != nullptr && size >= kKeptBytes);
  std::string hashed = "h";
  for (std::size_t i = 0; i < kKeptBytes; ++i) hashed += fmt::format("{:02x}", hash[i]);
  return hashed;
}

void HashKeys(const HashedNames& names, Json& bill) {
  const std::string by = Text(bill, "by");
  Json& rows = bill.at("rows");
  for (Json& row : rows) row["key"] = HashedKey(names, by, row.at("key").get<std::string>());
  std::sort(rows.begin(), rows.end(), [](const Json& left, const Json& right) {
    return left.at("key").get_ref<const std::string&>() <
           right.at("key").get_ref<const std::string&>();
  });
}

Json HashedDevices(const HashedNames& names, std::string_view record) {
  Json devices = Json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!devices.is_object()) return {};
  const auto hash = [&names](Json& object, const char* member, std::string_view of) {
    if (!object.contains(member)) return;
    Json& name = object[member];
    name = name.is_string() ? Json(names.Of(of, name.get_ref<const std::string&>())) : Json();
  };
  hash(devices, "leaf", "team");
  if (!devices.contains("containers")) return devices;
  Json& containers = devices["containers"];
  if (!containers.is_array()) return {};
  for (Json& container : containers) {
    if (!container.is_object()) return {};
    hash(container, "name", "container");
  }
  return devices;
}

ledger::ExportRow Hashed(const HashedNames& names, ledger::ExportRow row) {
  OpenInterval& interval = row.interval;
  interval.uid = PodUid(names.Of("uid", interval.uid.str()));
  interval.pod = {names.Of("namespace", interval.pod.ns), names.Of("pod", interval.pod.name)};
  interval.leaf = names.Of("team", interval.leaf);
  const Json devices = HashedDevices(names, row.devices);
  row.devices = devices.is_null() ? "" : devices.dump();
  row.workload.clear();
  return row;
}

}  // namespace tranche
