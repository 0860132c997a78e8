#include "test/sim/claims/drivers.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "test/sim/claims/device_slices.h"

namespace tranche::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SimTime kDisturbancePeriod = seconds(5);
constexpr const char* kSlices = "resourceslices";

std::string WhoIs(const std::string& node) { return "dra-driver/" + node; }

}  // namespace

Drivers::Drivers(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                 ApiServer& api, uint64_t seed)
    : loop_(loop),
      history_(history),
      script_(script),
      rate_(faults.rate(Fault::kAgent)),
      api_(api),
      draws_(seed),
      self_(loop.NewActor("dra-drivers")) {}

void Drivers::Start() {
  if (rate_ > 0) loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
}

void Drivers::Quiet() {
  quiet_ = true;
  for (const auto& [node, driver] : drivers_) Mend(node, driver.number);
}

void Drivers::Joined(const Machine& machine) {
  if (machine.kind != NodeKind::kDra) return;
  Driver& driver = drivers_[machine.name];
  driver = {machine, static_cast<int>(draws_.Between(1, 2)), {}, false, ++numbers_};
  loop_.After(milliseconds(draws_.Between(200, 4'000)), self_,
              [this, node = machine.name] { Publish(node); });
}

void Drivers::Left(const std::string& node) {
  const auto found = drivers_.find(node);
  if (found == drivers_.end()) return;
  const int64_t number = found->second.number;
  drivers_.erase(found);
  loop_.After(milliseconds(draws_.Between(100, 20'000)), self_,
              [this, node, number] { Withdraw(node, number); });
}

void Drivers::Publish(const std::string& node) {
  const auto found = drivers_.find(node);
  if (found == drivers_.end() || found->second.gone) return;
  const Driver& driver = found->second;
  const std::vector<Json> slices =
      SlicesOf(driver.machine, ++generations_[node], driver.slices, driver.away);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    loop_.After(milliseconds(draws_.Between(1, 500)) * (i + 1), self_,
                [this, node, number = driver.number, slice = slices[i]] {
                  const auto now = drivers_.find(node);
                  const bool same = now != drivers_.end() && now->second.number == number;
                  if (same && !now->second.gone) Send(slice);
                });
  }
}

void Drivers::Send(const Json& slice) {
  const std::string name = slice.at("metadata").at("name");
  const auto generation = [](const Json& of) {
    return of.at("spec").at("pool").at("generation").get<int64_t>();
  };
  const StoredPtr before = api_.store().Find(kSlices, name);
  if (before != nullptr && generation(before->object()) > generation(slice)) return;
  Write write{WhoIs(slice.at("spec").at("nodeName")),
              before == nullptr ? "POST" : "PUT",
              {FindResource(kSlices)}};
  if (before != nullptr) write.path.name = name;
  write.body = slice;
  api_.Do(self_, std::move(write));
}

void Drivers::Withdraw(const std::string& node, int64_t number) {
  const auto now = drivers_.find(node);
  // A new machine of that name has said what it has.
  if (now != drivers_.end() && now->second.number != number) return;
  const Store::Objects all = api_.store().All(kSlices);
  for (const auto& [name, slice] : all) {
    if (slice->object().at("spec").value("nodeName", "") != node) continue;
    Write write{"garbage-collector", "DELETE", {FindResource(kSlices)}};
    write.path.name = name;
    write.body = {{"preconditions", {{"uid", slice->uid()}}}};
    api_.Do(self_, std::move(write));
  }
}

void Drivers::Disturb() {
  if (quiet_) return;
  loop_.After(kDisturbancePeriod, self_, [this] { Disturb(); });
  std::optional<Draws> act = script_.ActByChance("dra-driver", rate_ * 8);
  if (!act || drivers_.empty()) return;
  auto at = drivers_.begin();
  std::advance(at, act->Below(static_cast<int64_t>(drivers_.size())));
  const auto& [node, driver] = *at;
  const int64_t number = driver.number;
  if (driver.gone || !driver.away.empty()) return;
  switch (act->Below(3)) {
    case 0:
      Tell(node, "its DRA driver is away");
      at->second.gone = true;
      Withdraw(node, number);
      break;
    case 1: {
      Tell(node, "devices are away");
      for (const DraDevice& device : DevicesOf(driver.machine)) {
        if (act->Below(3) == 0) at->second.away.insert(device.name);
      }
      Publish(node);
      break;
    }
    default:
      Tell(node, "its DRA driver publishes anew");
      at->second.slices = 3 - driver.slices;
      Withdraw(node, number);
      loop_.After(milliseconds(act->Between(1, 500)), self_, [this, node] { Publish(node); });
      return;
  }
  loop_.After(milliseconds(act->Between(500, 60'000)), self_,
              [this, node, number] { Mend(node, number); });
}

void Drivers::Mend(const std::string& node, int64_t number) {
  const auto found = drivers_.find(node);
  if (found == drivers_.end() || found->second.number != number) return;
  Driver& driver = found->second;
  if (!driver.gone && driver.away.empty()) return;
  driver.gone = false;
  driver.away.clear();
  Publish(node);
}

void Drivers::Tell(const std::string& node, const std::string& text) {
  Happening happening{Happening::Kind::kFault};
  happening.who = WhoIs(node);
  happening.text = "agent: " + text;
  history_.Add(std::move(happening));
}

}  // namespace tranche::sim
