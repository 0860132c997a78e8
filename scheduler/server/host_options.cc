#include "scheduler/server/host_options.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "policy/policy_store.h"
#include "scheduler/advice/demand.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

uint64_t DrawSeed() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

// As long as demand is kept, and as many as a mix remembers many times over.
constexpr std::chrono::hours kAskedFor{DemandLog::kHours};
constexpr int64_t kMostAsked = 100'000;
const char* const kClassKind = "GPUClass";

// What the pods of one text ask for. Null: nothing that can be read, or nothing that can be met.
std::shared_ptr<const PodRequest> RequestOf(std::string_view text, wire::Parser& parser) {
  const absl::StatusOr<wire::Element> element = parser.Parse(text);
  if (!element.ok()) return nullptr;
  absl::StatusOr<PodFacts> pod = wire::DecodePod(*element);
  if (!pod.ok() || pod->request.asks.empty()) return nullptr;
  return std::make_shared<const PodRequest>(std::move(pod->request));
}

std::vector<AskedBefore> AskedOf(const ledger::RecordedPast& past) {
  PolicyStore classes{GpuPolicy()};
  for (const ledger::RecordedChange& change : past.changes) {
    classes.Upsert(change.kind, change.name, past.texts.at(*change.text));
  }
  classes.Commit();
  wire::Parser parser;
  std::unordered_map<int64_t, std::shared_ptr<const PodRequest>> requests;  // looked up only
  std::vector<AskedBefore> asked;
  asked.reserve(past.pods.size());
  for (const ledger::RecordedPod& pod : past.pods) {
    const auto [request, fresh] = requests.try_emplace(pod.text);
    if (fresh) request->second = RequestOf(past.texts.at(pod.text), parser);
    if (request->second == nullptr) continue;
    const GpuClass* const gpu_class = classes.set().ClassOf(request->second->priority_class);
    std::optional<Instant> placed = pod.started;
    if (!placed && !pod.node.empty()) placed = pod.created;
    asked.push_back({request->second, gpu_class == nullptr ? "" : gpu_class->name, pod.created,
                     placed, pod.ended});
  }
  return asked;
}

absl::StatusOr<Remembered> ReadRemembered(const ServeConfig& config, Instant now) {
  Remembered remembered;
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(config.ledger));
  TRANCHE_ASSIGN_OR_RETURN(const ledger::RecordedPast past,
                           reader.Asked({now - kAskedFor, now, kMostAsked, {kClassKind}}));
  remembered.asked = AskedOf(past);
  if (!config.use.prometheus.empty()) {
    TRANCHE_ASSIGN_OR_RETURN(remembered.work, reader.Work());
  }
  return remembered;
}

}  // namespace

Remembered Remember(const ServeConfig& config, Instant now) {
  if (config.past_days == 0) return {};
  absl::StatusOr<Remembered> remembered = ReadRemembered(config, now);
  if (remembered.ok()) return *std::move(remembered);
  spdlog::warn("what pods asked for before is not known: {}",
               std::string(remembered.status().message()));
  return {};
}

HostOptions MakeHostOptions(const ServeConfig& config, int64_t epoch, ledger::SqliteLedger* book,
                            std::vector<AskedBefore> asked, RunNotes& runs,
                            std::function<bool()> may_write) {
  HostOptions options;
  options.asked = std::move(asked);
  options.ledger = book;
  if (book != nullptr) {
    options.history = book->TakeHistory();
    runs.Learn(options.history);
  }
  options.engine.tentative_lifetime = config.tentative_lifetime;
  options.engine.namespace_caps = config.hami;
  options.engine.placeholders = config.reservation;
  options.engine.epoch = epoch;
  options.engine.scheduler = config.admission.scheduler_name;
  options.engine.name_seed = DrawSeed();
  options.defaults = PolicyDefaults(config);
  options.may_write = std::move(may_write);
  options.use = config.use.prometheus.empty() ? UseReading::kOff : UseReading::kOn;
  if (config.cluster == ClusterKind::kKubernetes) options.cache_limit = config.cache_limit;
  return options;
}

}  // namespace tranche
