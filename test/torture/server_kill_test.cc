// Hazards 41 and 49, quota-model invariant 4: a whole server is killed at any instruction while
// pods come and go. Started again with the pods as the API server would have kept them, its ledger
// is sound, open intervals are exactly the pods bound, and the quota's use is a recount of them.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "scheduler/kube/transport/single_call.h"
#include "test/fakes/places.h"
#include "test/torture/story.h"

namespace tranche::torture {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{20};

// A loopback port nobody listened on a moment ago.
uint16_t FreePort() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(socket_fd);
  return ntohs(address.sin_port);
}

// The program, its output in a file.
class Program {
 public:
  Program(std::vector<std::string> words, const std::string& output) {
    words.insert(words.begin(), fakes::TrancheBinary());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    EXPECT_EQ(posix_spawn(&process_, fakes::TrancheBinary(), &actions, nullptr, arguments.data(),
                          environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() { Kill(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Kill() {
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    Wait();
  }
  // Its exit code; -1: a signal ended it.
  int Wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
};

Json Node(int number) {
  Json node = {{"apiVersion", "v1"}, {"kind", "Node"}};
  node["metadata"] = {{"name", fmt::format("node-{}", number)},
                      {"labels",
                       {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                        {"nvidia.com/gpu.memory", "81559"},
                        {"nvidia.com/gpu.count", "8"}}}};
  node["status"] = {{"allocatable", {{"nvidia.com/gpu", "8"}}},
                    {"capacity", {{"nvidia.com/gpu", "8"}}},
                    {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  return node;
}

Json Quota(const std::string& name, int gpus) {
  Json quota = {{"apiVersion", "tranche.dev/v1alpha1"}, {"kind", "GPUQuota"}};
  quota["metadata"] = {{"name", name}};
  quota["spec"] = {
      {"namespaceSelector", {{"matchLabels", {{"team", name}}}}},
      {"lines", Json::array({{{"model", "any"}, {"nominal", {{"gpus", std::to_string(gpus)}}}}})}};
  return quota;
}

Json Namespace(const std::string& name) {
  Json object = {{"apiVersion", "v1"}, {"kind", "Namespace"}};
  object["metadata"] = {{"name", name}, {"labels", {{"team", name}}}};
  return object;
}

// A waiting pod of one or two GPUs, or of half a GPU.
Json Pod(const std::string& team, const std::string& name, int64_t milli) {
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {{"name", name}, {"namespace", team}, {"uid", "uid-" + name}};
  Json container = {{"name", "main"}, {"image", "trainer"}};
  if (milli == 500) {
    pod["metadata"]["annotations"] = {{"tranche.dev/gpu-fraction", "0.5"}};
  } else {
    container["resources"]["limits"] = {{"nvidia.com/gpu", std::to_string(milli / 1000)}};
  }
  pod["spec"]["containers"] = Json::array({container});
  return pod;
}

Json List(Json items) {
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
}

constexpr int kNodes = 6;
constexpr const char* kTeams[] = {"team-a", "team-b"};

class ServerKills : public testing::Test {
 protected:
  struct BoundPod {
    Json object;  // as the server stored it
    std::string team;
    int64_t milli = 0;
  };

  std::string PathOf(const std::string& name) const { return folder_.path() + "/" + name; }
  void Write(const std::string& name, const Json& json) const {
    std::ofstream(PathOf(name)) << json.dump();
  }

  void SetUp() override {
    Json nodes = Json::array();
    for (int i = 0; i < kNodes; ++i) nodes.push_back(Node(i));
    Write("fleet.json", List(nodes));
    Write("quota.json", List(Json::array({Namespace("team-a"), Namespace("team-b"),
                                          Quota("team-a", 32), Quota("team-b", 16)})));
  }

  // Starts the server on the pods that are bound, and waits until it is ready.
  void Start() {
    Json pods = Json::array();
    for (const auto& [uid, pod] : bound_) pods.push_back(pod.object);
    Write("pods.json", List(pods));
    const uint16_t port = FreePort();
    at_.host = "127.0.0.1";
    at_.port = port;
    at_.tls = false;
    server_ = std::make_unique<Program>(
        std::vector<std::string>{"serve", "--cluster", "embedded", "--listen",
                                 fmt::format("127.0.0.1:{}", port), "--ledger", folder_.ledger(),
                                 "--objects", PathOf("fleet.json"), "--objects",
                                 PathOf("quota.json"), "--objects", PathOf("pods.json")},
        PathOf("server.log"));
    ASSERT_TRUE(Eventually([&] { return Call("GET", "/readyz").has_value(); }))
        << "expected the server to become ready, found " << Log("server.log");
  }

  std::string Log(const std::string& name) const {
    std::ifstream in(PathOf(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static bool Eventually(const std::function<bool()>& holds) {
    for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    return false;
  }

  // The body of a 200; nullopt for everything else, also for no server.
  std::optional<Json> Call(const std::string& method, const std::string& target,
                           const Json& body = nullptr) const {
    const absl::StatusOr<kube::SingleAnswer> reply =
        kube::CallOnce(at_, {method, target, body.is_null() ? "" : body.dump()});
    ++calls_;
    if (!reply.ok() || reply->status != 200) return std::nullopt;
    return Json::parse(reply->body, nullptr, false);
  }

  // What kube-scheduler does with a pod. False: the server is gone.
  bool Schedule(const std::string& team, int64_t milli) {
    const std::string name = fmt::format("pod-{}", ++pods_);
    const Json pod = Pod(team, name, milli);
    if (!Call("POST", "/embedded/v1/apply", pod)) return false;
    Json names = Json::array();
    for (int i = 0; i < kNodes; ++i) names.push_back(fmt::format("node-{}", i));
    const auto found =
        Call("POST", "/scheduler/filter", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", names}});
    if (!found) return false;
    if (found->at("NodeNames").empty()) return true;
    const auto bound = Call("POST", "/scheduler/bind",
                            {{"PodName", name},
                             {"PodNamespace", team},
                             {"PodUID", "uid-" + name},
                             {"Node", found->at("NodeNames").at(0)}});
    if (!bound) return false;
    EXPECT_EQ(bound->at("Error"), "");
    const auto stored =
        Call("GET", fmt::format("/embedded/v1/objects?kind=Pod&namespace={}&name={}", team, name));
    // Unseen, it may just as well not have happened.
    if (!stored) return false;
    bound_["uid-" + name] = {*stored, team, milli};
    return true;
  }

  bool DeleteOne() {
    const auto victim =
        std::next(bound_.begin(), static_cast<std::ptrdiff_t>(random_() % bound_.size()));
    const Json& metadata = victim->second.object.at("metadata");
    const auto gone = Call("POST", "/embedded/v1/delete",
                           {{"kind", "Pod"},
                            {"name", metadata.at("name")},
                            {"namespace", metadata.at("namespace")},
                            {"gracePeriodSeconds", 0}});
    if (!gone) return false;
    bound_.erase(victim);
    ++deleted_;
    return true;
  }

  // Pods come and go until the server does not answer.
  void Drive() {
    constexpr int64_t kSizes[] = {500, 1000, 2000};
    for (bool alive = true; alive;) {
      const bool remove = !bound_.empty() && random_() % 100 < 10 + 2 * bound_.size();
      alive = remove ? DeleteOne()
                     : Schedule(kTeams[random_() % 2], kSizes[random_() % std::size(kSizes)]);
    }
  }

  // The books against a recount from the pods.
  std::string Difference() const {
    std::set<std::string> open;
    absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(folder_.ledger());
    if (!reader.ok()) return reader.status().ToString();
    ledger::ReportQuery query;
    query.now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
    bool twice = false;
    const absl::Status read = reader->Export(query, [&](const ledger::ExportRow& row) {
      if (!row.end.has_value()) twice |= !open.insert(row.interval.uid.str()).second;
    });
    if (!read.ok()) return read.ToString();
    if (twice) return "a pod has two open intervals";
    std::set<std::string> uids;
    std::map<std::string, int64_t> milli;
    for (const auto& [uid, pod] : bound_) {
      uids.insert(uid);
      milli[pod.team] += pod.milli;
    }
    if (open != uids) {
      return fmt::format("expected {} open intervals, found {}", uids.size(), open.size());
    }
    const auto quotas = Call("GET", "/api/v1/quotas");
    if (!quotas) return "no answer to /api/v1/quotas";
    if (quotas->at("quotas").size() != std::size(kTeams)) return quotas->dump();
    for (const Json& quota : quotas->at("quotas")) {
      const std::string name = quota.at("name");
      if (quota.at("lines").empty()) return quotas->dump();
      for (const Json& line : quota.at("lines")) {
        const Json& used = line.at("usedGpus");
        const double gpus =
            used.is_string() ? std::stod(used.get<std::string>()) : used.get<double>();
        if (std::lround(gpus * 1000) != milli[name]) {
          return fmt::format("{}: expected {} milli-GPUs used, found {}", name, milli[name],
                             line.dump());
        }
      }
    }
    return "";
  }

  std::mt19937_64 random_{PrintedSeed()};
  Folder folder_;
  kube::Credentials at_;
  std::unique_ptr<Program> server_;
  std::map<std::string, BoundPod> bound_;  // by uid: what the API server would have kept
  mutable std::atomic<int64_t> calls_ = 0;
  int pods_ = 0;
  int deleted_ = 0;
};

TEST_F(ServerKills, LeaveALedgerThatAgreesWithThePods) {
  const int64_t kills = Size(5, 50, 500);
  Start();
  if (HasFatalFailure()) return;
  for (int64_t kill = 1; kill <= kills; ++kill) {
    SCOPED_TRACE(fmt::format("kill {}", kill));
    // After so many calls and somewhere within the next: a slow machine is not killed sooner.
    const int64_t last_call = calls_ + static_cast<int64_t>(random_() % 60);
    const std::chrono::microseconds later(random_() % 3'000);
    std::thread driver([this] { Drive(); });
    while (calls_ < last_call) std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::this_thread::sleep_for(later);
    server_->Kill();
    driver.join();
    Start();
    if (HasFailure()) return;
    std::string difference;
    EXPECT_TRUE(Eventually([&] { return (difference = Difference()).empty(); })) << difference;
    Program verify({"ledger", "verify", "--ledger", folder_.ledger()}, PathOf("verify.log"));
    EXPECT_EQ(verify.Wait(), 0) << Log("verify.log");
    if (HasFailure()) return;
  }
  fmt::print("{} kills, {} pods asked for, {} deleted, {} bound at the end\n", kills, pods_,
             deleted_, bound_.size());
  EXPECT_GT(pods_, kills);
  EXPECT_GT(bound_.size(), 0U);
}

}  // namespace
}  // namespace tranche::torture
