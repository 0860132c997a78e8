// The read-only API for those who may see some namespaces alone.
//
// Only the paths of one table are answered, each through a filter of its own; all else is refused
// with 403, also what is added to the API later. What is another's answers 404 like what is not
// there. Every answer is made anew and has a tag of its own bytes: nothing is shared with answers
// for others.
//
// Thread rule: any thread; not on those that may not wait for the engine. Cost: what the filtered
// namespaces hold; lists of nodes and quotas as the unfiltered ones.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/api/api.h"
#include "scheduler/api/router.h"
#include "scheduler/api/sight/sight.h"
#include "scheduler/api/sight/veil.h"
#include "scheduler/host/engine_host.h"

namespace tranche {

class LimitedApi {
 public:
  // Of so many namespaces with GPU work or quotas it is found out which ones somebody may see; of
  // more, they have to be named.
  static constexpr std::size_t kMostCandidates = 16;
  static constexpr std::chrono::seconds kCandidatesServe{10};

  // `all`: the unfiltered API. All outlive this.
  LimitedApi(EngineHost& host, const Router& all, ApiSources sources)
      : host_(host), all_(all), sources_(std::move(sources)) {}

  // Whether there is a filter for it; where there is none the request is to be refused.
  static bool Answers(const http::Request& request);
  // Which namespaces have to be seen, or are to be looked at.
  struct Scope {
    bool named = false;                   // the request names one; else whatever is seen
    std::vector<std::string> namespaces;  // of a name that none can have: empty
  };
  // `likely`: that the caller probably sees.
  Scope ScopeOf(const http::Request& request, const std::set<std::string>& likely);
  void Answer(http::Request request, Sight sight, http::Responder respond) const;

  // For everything else.
  static http::Response Refused();

 private:
  std::set<std::string> Candidates() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<PodView> PodsOf(const Sight& sight) const;
  // What is foretold of these pods, which are seen.
  Forecasts ForetoldOf(std::span<const PodView> pods, const Veil& veil) const;
  PodNotes NotesOf(const PodView& pod, const Forecasts& foretold, const Veil& veil) const;

  http::Response Pods(const http::Request& request, const Veil& veil, const Sight& sight) const;
  http::Response OnePod(const http::Request& request, const Veil& veil) const;
  http::Response Explain(const http::Request& request, const Veil& veil) const;
  http::Response Rank(const http::Request& request, const Veil& veil,
                      const std::vector<QuotaView>& quotas) const;
  http::Response Gangs(const http::Request& request, const Veil& veil) const;
  http::Response Events(const http::Request& request, const Veil& veil, const Sight& sight) const;
  http::Response Reclaims(const http::Request& request, const Veil& veil) const;
  http::Response Nodes(const http::Request& request, const Veil& veil) const;
  http::Response Quotas(const http::Request& request, const Veil& veil,
                        std::vector<QuotaView> quotas) const;
  http::Response Budgets(const http::Request& request, const Veil& veil) const;
  void Forecast(http::Request request, Veil veil, http::Responder respond) const;
  void Held(http::Request request, Veil veil, http::Responder respond) const;
  void OfOneTeam(http::Request request, const Veil& veil, http::Responder respond) const;
  void BurnDown(http::Request request, const Veil& veil, http::Responder respond) const;

  EngineHost& host_;
  const Router& all_;
  const ApiSources sources_;
  absl::Mutex mutex_;
  std::set<std::string> candidates_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::chrono::steady_clock::time_point> looked_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
