#include "bench/fill/protocol_placer.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/fill/draws.h"
#include "bench/fill/node_sample.h"
#include "bench/fill/objects.h"
#include "bench/http/client.h"
#include "bench/http/process.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/records/allocation_json.h"

namespace tranche::bench::fill {
namespace {

// What the configuration we print gives the extender; kube-scheduler stretches 0..10 to 0..100.
constexpr int64_t kWeight = 20;
constexpr int64_t kStretch = 10;
// What kube-scheduler's own plugins would give every node alike.
constexpr int64_t kTreeScore = 500;

// A folder that ends with its owner.
class Folder {
 public:
  static absl::StatusOr<Folder> Make() {
    std::string path = (std::filesystem::temp_directory_path() / "tranche-bench-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError("expected to make a temporary folder, could not");
    }
    return Folder(std::move(path));
  }
  Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

absl::Status WriteObjects(const std::string& path, const Variant& variant, const Books& books) {
  std::ofstream file(path);
  file << R"({"apiVersion":"v1","kind":"List","items":[)" << PolicyObject();
  for (int id = 0; id < books.size(); ++id) {
    file << ",\n" << NodeObject(id, books.node(id), variant.models);
  }
  file << "]}\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("expected to write {}, could not", path));
}

class ProtocolPlacer final : public Placer {
 public:
  ProtocolPlacer(const Variant& variant, Folder folder, Process process, uint16_t port,
                 uint64_t seed, int percent)
      : variant_(variant),
        folder_(std::move(folder)),
        process_(std::move(process)),
        client_(port),
        draws_(seed),
        sample_percent_(percent),
        sample_(percent) {}

  absl::Status Connect(uint16_t port) {
    if (absl::Status ready = WaitReady(port, process_); !ready.ok()) return ready;
    return client_.Connect();
  }

  absl::StatusOr<std::optional<Placement>> Place(const Books& books,
                                                 const Arrival& arrival) override {
    const TaskType& task = variant_.types[static_cast<std::size_t>(arrival.type)];
    const std::string pod = PodObject(arrival.serial, task, variant_.models);
    if (auto applied = Ask("/embedded/v1/apply", std::array<std::string_view, 1>{pod});
        !applied.ok()) {
      return applied.status();
    }
    absl::StatusOr<std::vector<int>> fitting = Filter(books, task, pod);
    // kube-scheduler tries again later, from where it stopped, until it has been everywhere.
    for (int seen = 0; fitting.ok() && fitting->empty() && !sample_.saw_all();) {
      seen += NodesToFind(books.size(), sample_percent_);
      if (seen >= 2 * books.size()) break;
      fitting = Filter(books, task, pod);
    }
    if (!fitting.ok()) return fitting.status();
    if (fitting->empty()) {
      if (absl::Status gone = Delete(arrival.serial); !gone.ok()) return gone;
      return std::nullopt;
    }
    const absl::StatusOr<int> node = Select(*fitting, pod);
    if (!node.ok()) return node.status();
    const absl::StatusOr<Placement> placement = Bind(arrival.serial, task, *node);
    if (!placement.ok()) return placement.status();
    return *placement;
  }

  absl::Status Leave(const Arrival& task, Instant /*now*/) override { return Delete(task.serial); }
  int64_t looks() const override { return looks_; }

 private:
  // The answer's document, valid until the next call.
  absl::StatusOr<wire::Element> Ask(std::string_view path,
                                    std::span<const std::string_view> pieces) {
    const absl::StatusOr<std::string_view> body = client_.Post(path, pieces);
    if (!body.ok()) return body.status();
    return parser_.Parse(*body);
  }

  // {"Pod":..,"NodeNames":[..]} to a verb.
  absl::StatusOr<wire::Element> AskAbout(std::string_view path, std::string_view pod,
                                         std::span<const int> nodes) {
    std::string names;
    for (const int id : nodes) {
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ",", NodeNameOf(id));
    }
    return Ask(path, std::array<std::string_view, 5>{
                         R"({"Pod":)", pod, R"(,"Nodes":null,"NodeNames":[)", names, "]}\n"});
  }

  absl::StatusOr<std::vector<int>> Filter(const Books& books, const TaskType& task,
                                          std::string_view pod) {
    ++looks_;
    const std::vector<int> candidates = sample_.Next(books, task);
    const absl::StatusOr<wire::Element> answer = AskAbout("/scheduler/filter", pod, candidates);
    if (!answer.ok()) return answer.status();
    wire::Object result;
    if (answer->get(result) != simdjson::SUCCESS) {
      return absl::UnavailableError("expected filter's answer, found no object");
    }
    const std::optional<wire::Array> names = wire::FindArray(result, "NodeNames");
    const std::string_view error = wire::FindText(result, "Error").value_or("");
    if (!names || !error.empty()) {
      return absl::UnavailableError(
          fmt::format("expected NodeNames of filter, found none, error \"{}\"", error));
    }
    std::vector<int> fitting;
    for (const wire::Element name : *names) {
      std::string_view text;
      if (name.get(text) != simdjson::SUCCESS) text = "";
      const auto id = NodeNumberOf(text);
      if (!id.ok()) return id.status();
      fitting.push_back(*id);
    }
    return fitting;
  }

  absl::StatusOr<int> Select(std::span<const int> fitting, std::string_view pod) {
    // kube-scheduler asks nobody when there is no choice.
    if (fitting.size() == 1) return fitting.front();
    const absl::StatusOr<wire::Element> answer = AskAbout("/scheduler/prioritize", pod, fitting);
    if (!answer.ok()) return answer.status();
    wire::Array priorities;
    if (answer->get(priorities) != simdjson::SUCCESS) {
      return absl::UnavailableError("expected a list of priorities, found none");
    }
    int64_t most = std::numeric_limits<int64_t>::min();
    std::vector<int> best;
    for (const wire::Element element : priorities) {
      wire::Object priority;
      if (element.get(priority) != simdjson::SUCCESS) {
        return absl::UnavailableError("expected a priority, found no object");
      }
      const auto id = NodeNumberOf(wire::FindText(priority, "Host").value_or(""));
      if (!id.ok()) return id.status();
      const int64_t score = wire::FindInteger(priority, "Score").value_or(0);
      const int64_t total = kTreeScore + score * kStretch * kWeight;
      if (total < most) continue;
      if (total > most) best.clear();
      most = total;
      best.push_back(*id);
    }
    if (best.empty()) return absl::UnavailableError("expected priorities, found an empty list");
    return best[draws_.Index(best.size())];
  }

  absl::StatusOr<Placement> Bind(int64_t serial, const TaskType& task, int node) {
    const std::string body =
        fmt::format(R"({{"PodName":"{}","PodNamespace":"{}","PodUID":"{}","Node":"{}"}})",
                    PodNameOf(serial), kNamespace, UidOf(serial), NodeNameOf(node));
    const auto answer = Ask("/scheduler/bind", std::array<std::string_view, 1>{body});
    if (!answer.ok()) return answer.status();
    wire::Object result;
    const bool is_object = answer->get(result) == simdjson::SUCCESS;
    const std::string_view error =
        is_object ? wire::FindText(result, "Error").value_or("") : "no object";
    if (!error.empty()) {
      return absl::UnavailableError(fmt::format("expected to bind {} to {}, found \"{}\"",
                                                PodNameOf(serial), NodeNameOf(node), error));
    }
    if (task.gpus == 0) return Placement{node, 0};
    return ReadPlacement(serial, task, node);
  }

  absl::StatusOr<Placement> ReadPlacement(int64_t serial, const TaskType& task, int node) {
    const auto body = client_.Get(fmt::format("/embedded/v1/objects?kind=Pod&namespace={}&name={}",
                                              kNamespace, PodNameOf(serial)));
    if (!body.ok()) return body.status();
    const absl::StatusOr<wire::Element> pod = parser_.Parse(*body);
    if (!pod.ok()) return pod.status();
    std::string_view text;
    if (pod->at_pointer("/metadata/annotations/tranche.dev~1allocation").get(text) !=
        simdjson::SUCCESS) {
      return absl::UnavailableError(
          fmt::format("expected {} on a bound pod, found none", wire::kAllocationKey));
    }
    const absl::StatusOr<Allocation> allocation = wire::DecodeAllocation(text);
    if (!allocation.ok()) return allocation.status();
    return PlacementOf(task, node, *allocation);
  }

  absl::Status Delete(int64_t serial) {
    const std::string body = fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"{}"}},"gracePeriodSeconds":0}})",
        PodNameOf(serial), kNamespace);
    return Ask("/embedded/v1/delete", std::array<std::string_view, 1>{body}).status();
  }

  const Variant& variant_;
  Folder folder_;
  Process process_;
  Client client_;
  wire::Parser parser_;
  Draws draws_;
  int sample_percent_;
  NodeSample sample_;
  int64_t looks_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Placer>> MakeProtocolPlacer(const Variant& variant,
                                                           const Books& books,
                                                           const std::string& server, uint64_t seed,
                                                           int percent) {
  absl::StatusOr<Folder> folder = Folder::Make();
  if (!folder.ok()) return folder.status();
  const std::string objects = folder->path() + "/nodes.json";
  if (absl::Status written = WriteObjects(objects, variant, books); !written.ok()) return written;
  const uint16_t port = FreePort();
  const std::vector<std::string> command = {
      server,      "serve",  "--cluster",   "embedded",
      "--clock",   "manual", "--listen",    fmt::format("127.0.0.1:{}", port),
      "--objects", objects,  "--log-level", "warn"};
  constexpr int kAnyCore = -1;
  absl::StatusOr<Process> process =
      Process::Start(command, folder->path() + "/server.log", kAnyCore);
  if (!process.ok()) return process.status();
  auto placer = std::make_unique<ProtocolPlacer>(variant, *std::move(folder), *std::move(process),
                                                 port, seed, percent);
  if (absl::Status connected = placer->Connect(port); !connected.ok()) return connected;
  return std::unique_ptr<Placer>(std::move(placer));
}

}  // namespace tranche::bench::fill
