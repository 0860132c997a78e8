#include "test/sim/check/past.h"

#include <fmt/format.h>

#include "test/sim/check/rows.h"

namespace tranche::sim::check {
namespace {

constexpr const char* kPods =
    "SELECT uid, namespace, name, node, ended, how FROM past_pod ORDER BY id";
// Gone when somebody looked again: a list may lag behind.
constexpr int kUnseen = 4;

}  // namespace

void PastChecker::AtEnd(const Ending& ending) {
  if (!options_.disks_are_sound) return;
  for (const std::string& path : ending.ledgers) CheckFile(path, ending.at);
}

void PastChecker::CheckFile(const std::string& path, SimTime at) {
  Rows rows(path, kPods);
  while (rows.Next()) {
    const std::string uid = rows.Text(0);
    const std::string key = rows.Text(1) + "/" + rows.Text(2);
    const PodLife* const pod = truth_.pod(uid);
    if (pod == nullptr || pod->key != key) {
      Found(at, key, fmt::format("expected no past of {}, which nobody made, found one", uid));
      continue;
    }
    const std::string node = rows.Text(3);
    if (!node.empty() && node != pod->node) {
      Found(at, key, fmt::format("expected a past on {}, found {}", pod->node, node));
    }
    const bool lives = !pod->ended && !pod->leaving;
    if (rows.IsNull(4) || rows.Number(5) == kUnseen || !lives) continue;
    Found(at, key,
          fmt::format("expected a past that goes on, found its end, by {}", rows.Number(5)));
  }
  if (!rows.problem().empty()) {
    Found(at, "", "expected a past that can be read, found: " + rows.problem());
  }
}

}  // namespace tranche::sim::check
