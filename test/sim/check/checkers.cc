#include "test/sim/check/checkers.h"

#include <type_traits>
#include <utility>

#include "test/sim/check/bindings.h"
#include "test/sim/check/charges.h"
#include "test/sim/check/claims.h"
#include "test/sim/check/devices.h"
#include "test/sim/check/evictions.h"
#include "test/sim/check/gangs.h"
#include "test/sim/check/leaders.h"
#include "test/sim/check/ledger.h"
#include "test/sim/check/liveness.h"
#include "test/sim/check/past.h"
#include "test/sim/check/quotas.h"
#include "test/sim/check/reasons.h"

namespace tranche::sim {

Checkers::Checkers(const Loop& loop, History& history, CheckOptions options)
    : loop_(loop), options_(std::move(options)) {
  const auto add = [this]<typename Kind>(const char* name, std::type_identity<Kind>) {
    checkers_.push_back(std::make_unique<Kind>(name, truth_, options_, findings_));
  };
  add("devices", std::type_identity<check::DeviceChecker>());
  add("bindings", std::type_identity<check::BindingChecker>());
  add("leaders", std::type_identity<check::LeaderChecker>());
  add("ledger", std::type_identity<check::LedgerChecker>());
  add("past", std::type_identity<check::PastChecker>());
  if (options_.charges) add("charges", std::type_identity<check::ChargeChecker>());
  if (options_.charges) add("claims", std::type_identity<check::ClaimChecker>());
  add("quotas", std::type_identity<check::QuotaChecker>());
  add("evictions", std::type_identity<check::EvictionChecker>());
  if (options_.gangs) add("gangs", std::type_identity<check::GangChecker>());
  add("reasons", std::type_identity<check::ReasonChecker>());
  add("liveness", std::type_identity<check::LivenessChecker>());
  history.Listen([this](const Happening& happening) {
    truth_.Hear(happening);
    for (const auto& checker : checkers_) checker->Hear(happening);
  });
}

void Checkers::Final(const Ask& ask, const std::vector<std::string>& ledgers) {
  const Ending ending{loop_.now(), ask, ledgers};
  for (const auto& checker : checkers_) checker->AtEnd(ending);
}

}  // namespace tranche::sim
