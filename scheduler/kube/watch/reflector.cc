#include "scheduler/kube/watch/reflector.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/kube/transport/server_url.h"
#include "topology/base/plant.h"
#include "topology/base/status.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMaxPages = 20'000;  // 10 million objects: a server that never ends its list
constexpr std::size_t kMaxDriftKeysLogged = 5;

// A proxy says 404 in words of its own, which prove nothing.
bool IsApiServersNotFound(const ApiStatus& status) {
  return status.reason == "NotFound" || status.message.starts_with("404 page not found");
}

}  // namespace

Reflector::Reflector(ReflectorOptions options, ApiClient& client, StopSignal& stop,
                     ObjectSink& sink, std::function<void()> on_synced)
    : options_(std::move(options)),
      client_(client),
      stop_(stop),
      sink_(sink),
      on_synced_(std::move(on_synced)),
      mirror_(options_.resource, sink),
      backoff_({options_.timing.backoff_first, options_.timing.backoff_cap,
                options_.timing.backoff_reset},
               options_.seed),
      expiry_backoff_({options_.timing.backoff_first, options_.timing.backoff_cap,
                       options_.timing.backoff_reset},
                      options_.seed + 2),
      random_(options_.seed + 1) {}

asio::awaitable<void> Reflector::Run() {
  Next next;
  while (!stop_.raised()) {
    if (next.kind == Next::Kind::kWatch && !list_wanted_) {
      next = co_await Watch();
    } else {
      list_wanted_ = false;
      next = co_await ListAndReplace();
    }
    if (stop_.raised()) co_return;
    const bool go_on = co_await WaitBefore(next);
    if (!go_on) co_return;
  }
}

asio::awaitable<bool> Reflector::WaitBefore(const Next& next) {
  if (next.kind == Next::Kind::kWaitAbsent) {
    const bool passed = co_await Rest(options_.timing.absent_retry);
    co_return passed;
  }
  if (!next.failed) co_return true;
  UpdateStatus([](ResourceStatus& status) { ++status.failures; });
  Backoff& backoff = next.expired ? expiry_backoff_ : backoff_;
  const milliseconds least = std::chrono::seconds(next.retry_after_seconds.value_or(0));
  const milliseconds wait = std::max(backoff.Next(steady_clock::now()), least);
  spdlog::warn("{}: {}; trying again in {} ms", options_.resource, next.why, wait.count());
  const bool passed = co_await Rest(wait, least);
  co_return passed;
}

asio::awaitable<bool> Reflector::Rest(milliseconds time, milliseconds least) {
  const TimePoint begin = steady_clock::now();
  const uint64_t returns = client_.returns();
  while (waiting_.empty()) {
    const auto passed_by = steady_clock::now() - begin;
    const auto left = std::chrono::ceil<milliseconds>(time - passed_by);
    if (left.count() <= 0) co_return true;
    const bool returned = client_.returns() != returns;
    const auto wait = returned ? std::chrono::ceil<milliseconds>(least - passed_by) : left;
    if (wait.count() <= 0) {
      backoff_.Reset();
      std::uniform_int_distribution<int64_t> spread(0, options_.timing.return_spread.count());
      const bool passed = co_await stop_.Sleep(std::min(left, milliseconds(spread(random_))));
      co_return passed;
    }
    const bool passed = co_await stop_.Sleep(std::min(left, wait), rest_ends_);
    if (!passed) co_return false;
  }
  // Once in a while even where somebody is in a hurry.
  const bool passed = co_await stop_.Sleep(std::min(time, milliseconds(200)));
  co_return passed;
}

void Reflector::ListAgain(std::function<void()> done) {
  waiting_.push_back(std::move(done));
  list_wanted_ = true;
  rest_ends_.Ring();
  if (watch_ != nullptr) watch_->Close();
}

absl::StatusOr<Reflector::Page> Reflector::ReadPage(const std::string& rest) {
  TRANCHE_ASSIGN_OR_RETURN(const auto document, parser_.Parse(rest));
  wire::Object root;
  const bool is_object = document.get(root) == simdjson::SUCCESS;
  const auto kind = is_object ? wire::FindText(root, "kind") : std::nullopt;
  const auto metadata = is_object ? wire::FindObject(root, "metadata") : std::nullopt;
  if (!kind || !kind->ends_with("List") || !metadata) {
    return absl::InvalidArgumentError(fmt::format("expected a list with metadata, found kind {}",
                                                  wire::Quoted(kind.value_or(""))));
  }
  Page page;
  page.resource_version = wire::FindText(*metadata, "resourceVersion").value_or("");
  page.continuation = wire::FindText(*metadata, "continue").value_or("");
  if (page.resource_version.empty()) {
    return absl::InvalidArgumentError("expected metadata.resourceVersion of a list, found none");
  }
  // An empty Go list may be written as null.
  if (wire::Find(root, "items") && !wire::FindArray(root, "items")) {
    return absl::InvalidArgumentError("expected items of a list to be an array, found another");
  }
  return page;
}

void Reflector::VisitItem(const JsonPiece& item, const Visitor& visit, Listing& out) {
  const absl::StatusOr<ReadObject> read = reader_.Read(item, OutlineOf);
  const absl::Status status = read.ok() ? visit(*read) : read.status();
  reader_.Rest();
  if (status.ok()) return;
  ++out.nameless;
  spdlog::error("cannot tell which of {} an item of a list is, taking all as still there: {}",
                options_.resource, std::string(status.message()));
}

Reflector::Listing Reflector::NoList(const ApiAnswer& answer, const absl::Status& problem,
                                     bool first_page) {
  // A body that is no list may be a Status, under any HTTP code.
  const ApiStatus status = ReadStatus(parser_, answer);
  Listing out;
  out.retry_after_seconds = status.retry_after_seconds;
  const std::string text = status.success ? std::string(problem.message())
                                          : fmt::format("{} {}", status.code, status.message);
  out.why = "list: " + text;
  if (status.code == 410 && !first_page) out.kind = Listing::Kind::kExpired;
  if (status.code == 404 && IsApiServersNotFound(status)) out.kind = Listing::Kind::kAbsent;
  if (status.code == 403) out.kind = Listing::Kind::kForbidden;
  return out;
}

asio::awaitable<Reflector::Listing> Reflector::ListAll(const Visitor& visit, bool paged) {
  Listing out;
  std::string continuation;
  int limit = page_size_;
  const int begun_with = limit;
  for (int number = 0; number < kMaxPages; ++number) {
    ListItems items;
    const PieceReader on_item = [&](const JsonPiece& item) {
      VisitItem(item, visit, out);
      return absl::OkStatus();
    };
    ApiRequest request;
    request.target = options_.Target(paged ? fmt::format("limit={}", limit) : "");
    if (!continuation.empty()) request.target += "&continue=" + PercentEncoded(continuation);
    request.read_body = [&](std::string_view bytes) { return items.Feed(bytes, on_item); };
    request.deadline = steady_clock::now() + options_.timing.request;
    ApiAnswer answer = co_await client_.Call(request);
    if (answer.transport != ApiAnswer::Transport::kAnswered) {
      out.why = "list: " + answer.error;
      // A page that began and did not come to its end in time may be too large for it.
      const bool cut_short = items.under_way() && answer.transport == ApiAnswer::Transport::kLost;
      if (!paged || !cut_short || limit == 1 || stop_.raised()) co_return out;
      page_size_ = limit /= 2;
      spdlog::warn("{}: {}; asking for {} objects at once", options_.resource, out.why, limit);
      continue;
    }
    absl::StatusOr<Page> page = absl::UnknownError("");
    if (answer.succeeded()) {
      answer.body = items.rest();
      page = ReadPage(answer.body);
    }
    if (!page.ok()) co_return NoList(answer, page.status(), continuation.empty());
    if (out.resource_version.empty()) out.resource_version = page->resource_version;
    continuation = page->continuation;
    if (continuation.empty()) {
      if (paged && limit == begun_with) page_size_ = std::min(kPageSize, 2 * limit);
      out.kind = Listing::Kind::kDone;
      co_return out;
    }
  }
  out.why = fmt::format("expected a list of at most {} pages, found more", kMaxPages);
  co_return out;
}

asio::awaitable<Reflector::Next> Reflector::ListAndReplace() {
  Next next;
  std::vector<std::function<void()>> waiting = std::exchange(waiting_, {});
  Mirror::List list;
  const Visitor collect = [this, &list](const ReadObject& item) {
    return mirror_.Collect(list, item);
  };
  Listing listing = co_await ListAll(collect, /*paged=*/true);
  if (listing.kind == Listing::Kind::kExpired) {
    // The snapshot behind the pages is gone; one answer cannot expire half-way.
    list.items.clear();
    listing = co_await ListAll(collect, /*paged=*/false);
  }
  if (stop_.raised()) co_return next;
  const bool absent = listing.kind == Listing::Kind::kAbsent && options_.may_be_absent;
  const bool forbidden = listing.kind == Listing::Kind::kForbidden && options_.may_be_forbidden;
  if (absent || forbidden) {
    next = GoWithout(listing);
    for (const auto& done : waiting) done();
    co_return next;
  }
  if (listing.kind != Listing::Kind::kDone) {
    if (options_.may_be_late) NoteSynced();
    std::move(waiting.begin(), waiting.end(), std::back_inserter(waiting_));
    next.failed = true;
    next.why = listing.why;
    next.retry_after_seconds = listing.retry_after_seconds;
    co_return next;
  }
  ++watch_epoch_;
  listed_at_ = steady_clock::now();
  list.incomplete = listing.nameless > 0;
  nameless_ = listing.nameless;
  mirror_.Replace(std::move(list));
  resource_version_ = listing.resource_version;
  absent_before_ = false;
  forbidden_told_ = false;
  UpdateStatus([](ResourceStatus& status) {
    if (status.synced) ++status.relists;
    status.synced = true;
    status.absent = false;
  });
  NoteHeard();
  spdlog::info("{}: {} objects listed at version {}", options_.resource, mirror_.known().size(),
               resource_version_);
  NoteSynced();
  for (const auto& done : waiting) done();
  next.kind = Next::Kind::kWatch;
  co_return next;
}

Reflector::Next Reflector::GoWithout(const Listing& listing) {
  const bool absent = listing.kind == Listing::Kind::kAbsent;
  // Said once, not with every try.
  if (!absent && !forbidden_told_) {
    spdlog::warn("{}: {}; going on without", options_.resource, listing.why);
  }
  forbidden_told_ = !absent;
  // What is known is given up only when that is said twice in a row.
  if (absent && absent_before_) mirror_.Replace({});
  absent_before_ = absent;
  UpdateStatus([](ResourceStatus& status) { status.absent = true; });
  NoteSynced();
  return {.kind = Next::Kind::kWaitAbsent};
}

void Reflector::NoteSynced() {
  if (!std::exchange(synced_, true)) on_synced_();
}

bool Reflector::JustListed() const {
  return steady_clock::now() - listed_at_ < options_.timing.backoff_reset;
}

asio::awaitable<Reflector::Next> Reflector::Watch() {
  std::uniform_int_distribution<int64_t> draw(options_.timing.watch_min.count(),
                                              options_.timing.watch_max.count());
  const std::chrono::seconds length(draw(random_));
  const std::string target = options_.Target(
      fmt::format("watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                  PercentEncoded(resource_version_), length.count()));
  const TimePoint started = steady_clock::now();
  WatchOpening opening = co_await client_.OpenWatch(target);
  Next next;
  next.kind = Next::Kind::kWatch;
  if (opening.stream != nullptr) {
    ++watch_epoch_;
    const bool again = watched_;
    watched_ = true;
    UpdateStatus([again](ResourceStatus& status) {
      if (again) ++status.reconnects;
    });
    NoteHeard();
    if (!waiting_.empty()) co_return next;  // to Run, which lists
    probed_ = false;
    watch_ = opening.stream.get();
    next = co_await ReadWatch(*opening.stream, started, length);
    watch_ = nullptr;
    co_return next;
  }
  next.failed = true;
  if (opening.answer.transport != ApiAnswer::Transport::kAnswered) {
    next.why = "watch: " + opening.answer.error;
    co_return next;
  }
  const ApiStatus status = ReadStatus(parser_, opening.answer);
  next.why = fmt::format("watch: {} {}", status.code, status.message);
  next.retry_after_seconds = status.retry_after_seconds;
  const bool same_version =
      status.code == 429 || status.code >= 500 || status.code == 401 || status.code == 403;
  const bool goes_on = same_version || TRANCHE_PLANTED(expired_watch_goes_on);
  if (!goes_on) next.kind = Next::Kind::kList;
  if (status.code == 410) next.failed = next.expired = JustListed();
  co_return next;
}

asio::awaitable<Reflector::Next> Reflector::ReadWatch(WatchStream& stream, TimePoint started,
                                                      std::chrono::seconds length) {
  WatchFrames frames;
  frame_seen_ = false;
  watch_ends_as_.reset();
  const PieceReader on_frame = [this](const JsonPiece& frame) { return OnFrame(frame); };
  const TimePoint guard = started + length + options_.timing.watch_guard;
  Next next;
  next.kind = Next::Kind::kWatch;
  for (;;) {
    const TimePoint silence = steady_clock::now() + options_.timing.watch_silence;
    const auto piece = co_await stream.Read(std::min(silence, guard));
    if (!piece.ok()) {
      next.why = "watch: " + std::string(piece.status().message());
      break;
    }
    if (piece->empty()) {
      next.why = "watch: ended by the server at once";
      break;
    }
    const absl::Status status = frames.Feed(*piece, on_frame);
    if (frame_seen_) NoteHeard();
    if (watch_ends_as_) {
      next = *watch_ends_as_;
      break;
    }
    if (!status.ok()) {
      // From the last good version the same event comes again, whole; when it is the first thing
      // to come and still unreadable, only a list leads past it.
      next.kind = frame_seen_ ? Next::Kind::kWatch : Next::Kind::kList;
      next.failed = true;
      next.why = "watch: " + std::string(status.message());
      co_return next;
    }
  }
  // A watch that ends is normal; one that ends at once is not.
  const bool lived = frame_seen_ || steady_clock::now() - started >= options_.timing.watch_short;
  next.failed = next.failed || !lived;
  co_return next;
}

absl::Status Reflector::OnFrame(const JsonPiece& frame) {
  TRANCHE_ASSIGN_OR_RETURN(const ReadObject event, reader_.Read(frame, OutlineOfEvent));
  absl::Status status = OnEvent(event);
  reader_.Rest();
  return status;
}

absl::Status Reflector::OnEvent(const ReadObject& event) {
  wire::Object root;
  if (event.object.get(root) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("expected a watch event, found no object");
  }
  const std::string_view type = wire::FindText(root, "type").value_or("");
  const auto object = wire::Find(root, "object");
  if (type == "ERROR" && object) return OnErrorEvent(*object);
  absl::Status status;
  std::string version;
  wire::Object body;
  if (object && object->get(body) == simdjson::SUCCESS) {
    const auto metadata = wire::FindObject(body, "metadata");
    version = metadata ? wire::FindText(*metadata, "resourceVersion").value_or("") : "";
  }
  if (version.empty()) {
    status = absl::InvalidArgumentError("expected a resourceVersion in a watch event, found none");
  } else if (type == "ADDED" || type == "MODIFIED") {
    status = mirror_.Changed({*object, event.problem});
  } else if (type == "DELETED") {
    status = mirror_.Deleted(*object);
  } else if (type != "BOOKMARK") {
    status = absl::InvalidArgumentError(
        fmt::format("expected a known watch event type, found {}", wire::Quoted(type)));
  }
  if (status.ok()) {
    resource_version_ = version;
    frame_seen_ = true;
    probed_ = false;
    return status;
  }
  // What this event would have said is unknown: only a list can tell.
  Next next;
  next.failed = true;
  next.why = "watch: " + std::string(status.message());
  watch_ends_as_ = next;
  return status;
}

absl::Status Reflector::OnErrorEvent(wire::Element object) {
  const ApiStatus status = DecodeStatus(object).value_or(ApiStatus());
  Next next;
  next.why = fmt::format("watch: error event {} {}", status.code, status.message);
  next.retry_after_seconds = status.retry_after_seconds;
  const bool same_version = status.code == 429 || status.code == 500 || status.code == 504;
  const bool goes_on = same_version || TRANCHE_PLANTED(expired_watch_goes_on);
  next.kind = goes_on ? Next::Kind::kWatch : Next::Kind::kList;
  next.expired = status.code == 410;
  next.failed = !next.expired || JustListed();
  watch_ends_as_ = next;
  return absl::AbortedError(next.why);
}

asio::awaitable<void> Reflector::CheckForDrift() {
  for (;;) {
    const bool passed = co_await stop_.Sleep(options_.timing.drift_period);
    if (!passed) co_return;
    if (watch_ != nullptr) co_await CheckOnce();
    mirror_.StopTouching();
  }
}

asio::awaitable<void> Reflector::ProbeInSilence() {
  for (;;) {
    const bool passed = co_await stop_.Sleep(options_.timing.probe_period);
    if (!passed) co_return;
    // Bookmarks come once a minute, and are given the time for it.
    const auto silence = steady_clock::now() - status().heard;
    if (watch_ == nullptr || silence < options_.timing.probe_period * (probed_ ? 3 : 2)) continue;
    const uint64_t epoch = watch_epoch_;
    ApiRequest request;
    request.target = options_.Target("limit=1");
    request.deadline = steady_clock::now() + options_.timing.probe_period;
    const ApiAnswer answer = co_await client_.Call(request);
    if (!answer.succeeded() || watch_ == nullptr || epoch != watch_epoch_) continue;
    // The server is there, which says little of the watch: behind a proxy that keeps its
    // connection up it may have died. Taken for a sign of life once; then it is opened anew, which
    // is one.
    if (probed_) {
      watch_->Close();
    } else {
      NoteHeard();
      probed_ = true;
    }
  }
}

asio::awaitable<void> Reflector::CheckOnce() {
  const uint64_t epoch = watch_epoch_;
  mirror_.StartTouching();
  ObjectVersions fresh;
  const Visitor collect = [&fresh](const ReadObject& item) -> absl::Status {
    TRANCHE_ASSIGN_OR_RETURN(auto meta, DecodeMeta(item.object));
    fresh[meta.identity.key] =
        ObjectVersion{meta.identity.uid, meta.resource_version, false, false};
    return absl::OkStatus();
  };
  const Listing listing = co_await ListAll(collect, /*paged=*/true);
  // What is missing in a list with nameless items may be one of them.
  if (listing.kind != Listing::Kind::kDone || listing.nameless > 0) co_return;
  if (mirror_.Differences(fresh).empty()) co_return;
  const bool passed = co_await stop_.Sleep(options_.timing.drift_grace);
  // A new watch or list in between has its own truth.
  if (!passed || epoch != watch_epoch_ || watch_ == nullptr) co_return;
  const std::vector<std::string> missed = mirror_.Differences(fresh);
  if (missed.empty()) co_return;
  UpdateStatus(
      [&missed](ResourceStatus& status) { status.drifted += static_cast<int64_t>(missed.size()); });
  const auto end =
      missed.begin() + static_cast<std::ptrdiff_t>(std::min(missed.size(), kMaxDriftKeysLogged));
  spdlog::error("{}: {} objects differ from a fresh list, listing again; first: {}",
                options_.resource, missed.size(), fmt::join(missed.begin(), end, ", "));
  list_wanted_ = true;
  watch_->Close();
}

void Reflector::NoteHeard() {
  sink_.Heard();
  const int64_t undecodable = mirror_.undecodable();
  const int64_t unreadable = mirror_.unreadable() + nameless_;
  UpdateStatus([undecodable, unreadable](ResourceStatus& status) {
    status.heard = steady_clock::now();
    status.undecodable = undecodable;
    status.unreadable = unreadable;
  });
}

void Reflector::UpdateStatus(const std::function<void(ResourceStatus&)>& change) {
  const absl::MutexLock lock(&mutex_);
  change(status_);
}

ResourceStatus Reflector::status() const {
  const absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace tranche::kube
