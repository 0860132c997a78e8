// Keeps a Mirror in step with one resource of the API server: list, watch, and when the watch
// cannot go on from where it was, list again.
//
// Every list asks for the newest state (resourceVersion unset): "0", client-go's default, may show
// a world older than the one already acted on. Between events little is polled:
// CheckForDrift compares with a fresh list now and then and repairs by a new list, and
// ProbeInSilence asks for one object while a watch is open and silent, and opens a watch anew that
// stays silent after it. An idle cluster sends a
// bookmark about once a minute, which is no fresher than the oldest cache decisions may rest on;
// a connection that died is found by TCP (keep-alive, TCP_USER_TIMEOUT).
//
// Thread rule: Run, CheckForDrift and ProbeInSilence are coroutines of the reading thread and end
// when the stop signal is raised; status() from any. Source: kube-client-protocol sections 5 to
// 7, 9.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/kube/transport/api_client.h"
#include "scheduler/kube/transport/stop_signal.h"
#include "scheduler/kube/transport/timing.h"
#include "scheduler/kube/watch/json_cut.h"
#include "scheduler/kube/watch/mirror.h"
#include "scheduler/kube/watch/resource_status.h"

namespace tranche::kube {

struct ReflectorOptions {
  std::string resource;  // "pods"
  std::string path;      // "/api/v1/pods"
  std::string query;     // that all its lists and watches have: "fieldSelector=..."; empty: none
  // 404 means that there are none (a custom resource not installed), not that something is wrong.
  bool may_be_absent = false;
  // 403 means to go on without (rights older than this program), not to wait for them.
  bool may_be_forbidden = false;
  // Nobody waits for it: a first list that fails counts as synced too.
  bool may_be_late = false;
  Timing timing;
  uint64_t seed = 0;  // of jitter and watch lengths

  // Of a list or watch that asks so as well.
  std::string Target(std::string_view more) const {
    std::string target = path;
    for (const std::string_view part : {more, std::string_view(query)}) {
      if (part.empty()) continue;
      target += target.size() == path.size() ? '?' : '&';
      target += part;
    }
    return target;
  }
};

class Reflector {
 public:
  // `on_synced` is called once, after the first complete list has been handed over, or once it is
  // certain that there is none for us (or that it may come late).
  Reflector(ReflectorOptions options, ApiClient& client, StopSignal& stop, ObjectSink& sink,
            std::function<void()> on_synced);

  boost::asio::awaitable<void> Run();
  boost::asio::awaitable<void> CheckForDrift();
  boost::asio::awaitable<void> ProbeInSilence();
  // Lists again, at once; `done` hears when a list that began after this call was handed over, or
  // when it is certain that there is none for us.
  void ListAgain(std::function<void()> done);
  const std::string& resource() const { return options_.resource; }
  ResourceStatus status() const;

 private:
  static constexpr int kPageSize = 500;  // client-go's

  // What to do next and whether to wait first.
  struct Next {
    enum class Kind : uint8_t { kList, kWatch, kWaitAbsent };
    Kind kind = Kind::kList;
    bool failed = false;
    bool expired = false;  // failed with 410: the server is there, its history is not
    std::string why = {};
    std::optional<int64_t> retry_after_seconds = {};
  };
  struct Listing {
    enum class Kind : uint8_t { kDone, kExpired, kAbsent, kForbidden, kFailed };
    Kind kind = Kind::kFailed;
    std::string resource_version;  // kDone
    std::string why;
    std::optional<int64_t> retry_after_seconds;
    int64_t nameless = 0;  // items that could not be told by name
  };
  struct Page {
    std::string resource_version;
    std::string continuation;
  };
  // Errors: InvalidArgument for an object that cannot be told by name.
  using Visitor = std::function<absl::Status(const ReadObject&)>;

  boost::asio::awaitable<Next> ListAndReplace();
  // There is nothing to list: goes on without, and tries again later.
  Next GoWithout(const Listing& listing);
  void NoteSynced();
  boost::asio::awaitable<Listing> ListAll(const Visitor& visit, bool paged);
  // Of a page the items; one that cannot be read is not the end of the list.
  void VisitItem(const JsonPiece& item, const Visitor& visit, Listing& out);
  // What a page says beside its items.
  absl::StatusOr<Page> ReadPage(const std::string& rest);
  // What an answer that is no list means.
  Listing NoList(const ApiAnswer& answer, const absl::Status& problem, bool first_page);
  boost::asio::awaitable<Next> Watch();
  boost::asio::awaitable<Next> ReadWatch(WatchStream& stream, TimePoint started,
                                         std::chrono::seconds length);
  absl::Status OnFrame(const JsonPiece& frame);
  absl::Status OnEvent(const ReadObject& event);
  absl::Status OnErrorEvent(wire::Element object);
  boost::asio::awaitable<bool> WaitBefore(const Next& next);
  // Ends early when somebody waits for a list, and after `least` when the server is back from an
  // outage, whichever resource found that out.
  boost::asio::awaitable<bool> Rest(std::chrono::milliseconds time,
                                    std::chrono::milliseconds least = {});
  boost::asio::awaitable<void> CheckOnce();
  // A 410 so soon after a list is no ordinary expiry: listing again at once would run in circles.
  bool JustListed() const;
  void NoteHeard();
  void UpdateStatus(const std::function<void(ResourceStatus&)>& change);

  const ReflectorOptions options_;
  ApiClient& client_;
  StopSignal& stop_;
  ObjectSink& sink_;
  std::function<void()> on_synced_;
  Mirror mirror_;
  Backoff backoff_;
  Backoff expiry_backoff_;  // of 410s, which say nothing of an outage before them
  std::mt19937_64 random_;
  ObjectReader reader_;
  wire::LenientParser parser_;

  std::string resource_version_;  // the watch goes on behind it
  TimePoint listed_at_;
  bool synced_ = false;          // on_synced_ was called
  bool absent_before_ = false;   // the last list was answered by 404
  bool forbidden_told_ = false;  // since the last list that was answered otherwise
  int64_t nameless_ = 0;         // of the last complete list
  // Objects a list asks for at once, as it begins: what worked the last time, or twice as many.
  int page_size_ = kPageSize;
  bool watched_ = false;                        // a watch was open before
  bool frame_seen_ = false;                     // in the current watch
  bool probed_ = false;                         // the last sign of life was the probe's
  std::optional<Next> watch_ends_as_;           // set by the frame that ends it
  WatchStream* watch_ = nullptr;                // the current one
  uint64_t watch_epoch_ = 0;                    // counts lists and watches
  bool list_wanted_ = false;                    // drift was found, or somebody waits for a list
  std::vector<std::function<void()>> waiting_;  // for a list that has not begun
  Bell rest_ends_;                              // rings when Rest may end early
  Bell::Registration hears_returns_{client_.returned(), [this] { rest_ends_.Ring(); }};

  mutable absl::Mutex mutex_;
  ResourceStatus status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche::kube
