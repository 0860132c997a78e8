#include "scheduler/controllers/idle_spans.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tranche {

void IdleSpans::Tell(Known& known, std::vector<IdleSpan>& news) {
  if (known.span.until - known.span.since < kShortest || known.told == known.span.until) return;
  known.told = known.span.until;
  news.push_back(known.span);
}

std::vector<IdleSpan> IdleSpans::Note(std::span<const IdleSpan> idle) {
  std::vector<IdleSpan> news;
  std::map<PodUid, Known> before = std::exchange(known_, {});
  for (const IdleSpan& span : idle) {
    Known now{span, std::nullopt};
    const auto known = before.find(span.uid);
    if (known != before.end() && known->second.span.since == span.since) {
      now.told = known->second.told;
      before.erase(known);
    }
    if (!now.told || now.span.until - *now.told >= kEvery) Tell(now, news);
    known_.emplace(span.uid, now);
  }
  // Those that are over.
  for (auto& [uid, known] : before) Tell(known, news);
  std::ranges::sort(news, {}, [](const IdleSpan& span) { return std::tie(span.uid, span.since); });
  return news;
}

}  // namespace tranche
