#include "test/sim/check/terms.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace tranche::sim::check {
namespace {

constexpr SimTime kTakingOver = std::chrono::seconds(10);

// What the supervisor says of a replica that does nothing for a while.
constexpr std::string_view kStandsStill = "stands still for ";

}  // namespace

SimTime Terms::Term::TakenOver() const { return from + kTakingOver + still; }

void Terms::StandStill(const Happening& fault) {
  const std::size_t at = fault.text.find(kStandsStill);
  if (at == std::string::npos) return;
  const std::string time = fault.text.substr(at + kStandsStill.size());
  for (Term& term : terms_) {
    if (!term.until && term.who.starts_with(fault.who + "/")) {
      term.still += std::chrono::milliseconds(std::stoll(time));
    }
  }
}

void Terms::Hear(const Happening& happening) {
  using Kind = Happening::Kind;
  if (happening.kind == Kind::kFault) return StandStill(happening);
  const bool leads = happening.kind == Kind::kLeads;
  const bool ends = happening.kind == Kind::kLost || happening.kind == Kind::kEnded;
  for (Term& term : terms_) {
    // One that another follows stood still, and does nothing more.
    const bool over = leads || (ends && term.who == happening.who);
    if (over && !term.until) term.until = happening.at;
  }
  if (leads && happening.text.empty()) terms_.push_back({happening.at, {}, happening.who});
}

SimTime Terms::UnledSince(SimTime at, SimTime lag) const {
  SimTime since{0};
  for (const Term& term : terms_) {
    if (term.from > at) break;
    if (term.until && *term.until <= at) {
      // One that was lost while it took over may have written nothing.
      if (*term.until >= term.TakenOver()) since = std::max(since, *term.until);
    } else if (lag == SimTime{0} || term.TakenOver() + lag <= at) {
      return at;
    }
  }
  return since;
}

SimTime Terms::AwareBy(SimTime at, SimTime lag) const {
  for (const Term& term : terms_) {
    if (term.until && *term.until <= at + lag) continue;
    // A leader that has begun a moment ago has not seen everything yet either.
    return std::max(at, term.TakenOver());
  }
  return SimTime::max();
}

SimTime Terms::LedUntil(SimTime at) const {
  SimTime until{0};
  for (const Term& term : terms_) {
    if (term.from <= at) until = term.until.value_or(SimTime::max());
  }
  return until;
}

SimTime Terms::FirstLed() const {
  for (const Term& term : terms_) {
    if (!term.until || *term.until >= term.TakenOver()) return term.from;
  }
  return std::chrono::hours(1'000'000);
}

bool Terms::LedByOne(SimTime from, SimTime to) const {
  return std::ranges::any_of(terms_, [&](const Term& term) {
    return term.from + kTakingOver <= from && (!term.until || *term.until > to);
  });
}

bool Terms::LedFor(SimTime span, SimTime until) const {
  return std::ranges::any_of(terms_, [&](const Term& term) {
    return std::min(term.until.value_or(until), until) - term.from >= span;
  });
}

bool Terms::Meters(const std::string& who) const {
  return std::ranges::any_of(terms_, [&](const Term& term) { return term.who == who; });
}

bool Terms::MayBeTakenToEnd(SimTime ended, SimTime until, SimTime lag) const {
  const Term* led = nullptr;
  for (const Term& term : terms_) {
    if (term.from <= ended) led = &term;
  }
  if (led == nullptr) return true;
  // It was lost before it heard of the end.
  if (led->until && *led->until <= ended + lag && until <= *led->until) return true;
  return ended < led->TakenOver() && until <= ended;
}

}  // namespace tranche::sim::check
