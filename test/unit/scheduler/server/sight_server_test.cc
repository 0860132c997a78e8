// What each caller sees of a whole server: every role at every path of the API, and that nothing of
// another team is in any answer to one who may see his own namespace alone.
#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "test/unit/scheduler/server/live_server.h"
#include "test/unit/scheduler/server/viewers/tokens.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

using testing::HasSubstr;
using testing::Not;

// In every name of the other team, and in nothing else.
constexpr const char* kMark = "zebra";

struct RawReply {
  int status = 0;
  std::string head;
  std::string body;
};

Json NamedQuota(const std::string& name, const std::string& ns, int nominal) {
  return {{"apiVersion", "tranche.dev/v1alpha1"},
          {"kind", "GPUQuota"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"parent", "org"},
            {"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", ns}}}}},
            {"lines",
             {{{"model", "h100"},
               {"nominal", {{"gpus", nominal}}},
               {"borrowLimit", {{"gpus", 8}}}}}}}}};
}

Json NamedBudget(const std::string& name, const std::string& quota) {
  return {{"apiVersion", "tranche.dev/v1alpha1"},
          {"kind", "GPUBudget"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"quotaRef", quota},
            {"gpuHours", 5000},
            {"window", {{"type", "Month"}, {"timeZone", "UTC"}}}}}};
}

// Team A has borrowed a GPU of a team that wants it back; both have pods, gangs and budgets.
class SightServer : public LiveServer {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("sight-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    reviews.users = {{"all", {"ada", "1", {}, {}}},
                     {"metrics", {"prometheus", "2", {}, {}}},
                     {"member", {"bob", "3", {}, {}}},
                     {"stranger", {"eve", "4", {}, {}}}};
    reviews.rights = {{"ada", "list gpuquotas"},
                      {"prometheus", "get /metrics"},
                      {"bob", "get gpuquotaviews team-a"}};
    ServeConfig config;
    config.port = 0;
    config.manual_clock = true;
    config.ledger = folder_ / "ledger.db";
    config.pages_auth = PageAuth::kKubernetes;
    config.page_reviews_per_second = 1'000;
    RuntimeHooks hooks;
    hooks.reviews = &reviews;
    runtime = std::make_unique<Runtime>(config, hooks);
    const absl::Status started = runtime->Start();
    ASSERT_TRUE(started.ok()) << started;
    server = LoopbackServer(runtime->port());
    server.token = "all";
    server.token_in_clear = true;
    MakeWorld();
  }
  void TearDown() override {
    LiveServer::TearDown();
    std::filesystem::remove_all(folder_);
  }

  void Add(const std::string& ns, const std::string& name, bool fits,
           const std::map<std::string, std::string>& annotations = {}) {
    Json pod = MakePod(name, {{"nvidia.com/gpu", "1"}}, annotations);
    pod["metadata"]["namespace"] = ns;
    Apply(pod);
    EXPECT_EQ(Schedule(pod, {"gpu-1"}), fits ? "gpu-1" : "") << name;
  }
  void MakeWorld() {
    Apply({{"apiVersion", "tranche.dev/v1alpha1"},
           {"kind", "GPUQuota"},
           {"metadata", {{"name", "org"}}},
           {"spec", Json::object()}});
    for (const char* ns : {"team-a", "zebra-ns"}) {
      Apply({{"apiVersion", "v1"},
             {"kind", "Namespace"},
             {"metadata", {{"name", ns}, {"labels", {{"kubernetes.io/metadata.name", ns}}}}}});
    }
    Apply(NamedQuota("own", "team-a", 2));
    Apply(NamedQuota("zebra-quota", "zebra-ns", 2));
    Apply(NamedBudget("own-budget", "own"));
    Apply(NamedBudget("zebra-budget", "zebra-quota"));
    Apply(MakeNode("gpu-1", 4));
    Add("zebra-ns", "zebra-runs", true);
    for (const char* name : {"one", "two", "three"}) Add("team-a", name, true);
    Post("/embedded/v1/clock", {{"advanceSeconds", 7200}});
    Add("zebra-ns", "zebra-wants", false);
    Add("team-a", "waits", false);
    const auto gang = [](const char* name) {
      return std::map<std::string, std::string>{{"tranche.dev/gang", name},
                                                {"tranche.dev/gang-size", "2"}};
    };
    Add("team-a", "half", false, gang("own-gang"));
    Add("zebra-ns", "zebra-half", false, gang("zebra-gang"));
    Post("/embedded/v1/clock", {{"advanceSeconds", 0}});
  }

  RawReply Raw(const std::string& token, const std::string& target, const std::string& headers = "",
               const std::string& method = "GET") const {
    boost::asio::io_context context;
    boost::asio::ip::tcp::socket socket(context);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), runtime->port()});
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
                       "Connection: close\r\n";
    if (!token.empty()) text += "Authorization: Bearer " + token + "\r\n";
    boost::asio::write(socket, boost::asio::buffer(text + "\r\n"));
    std::string all;
    boost::system::error_code ended;
    boost::asio::read(socket, boost::asio::dynamic_buffer(all), ended);
    RawReply reply;
    const std::size_t end = all.find("\r\n\r\n");
    if (end == std::string::npos) return reply;
    reply.head = all.substr(0, end);
    reply.body = all.substr(end + 4);
    reply.status = std::stoi(reply.head.substr(9, 3));
    return reply;
  }
  static std::string HeaderOf(const RawReply& reply, const std::string& name) {
    const std::size_t at = reply.head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return reply.head.substr(begin, reply.head.find("\r\n", begin) - begin);
  }

  const std::filesystem::path& folder() const { return folder_; }
  FakeReviews reviews;

 private:
  std::filesystem::path folder_;
};

TEST_F(SightServer, TakesTokensThatAProxyLeavesAlone) {
  const auto status = [this](const char* token, const char* own) {
    return Raw(token, "/api/v1/pods", std::string("Tranche-Authorization: ") + own + "\r\n").status;
  };
  EXPECT_EQ(status("", "Bearer member"), 200);
  EXPECT_EQ(status("", "Bearer stranger"), 403);
  EXPECT_EQ(status("", "Bearer nobodys"), 401);
  EXPECT_EQ(status("", "member"), 401) << "no bearer token";
  EXPECT_EQ(status("member", "Bearer member"), 200);
  EXPECT_EQ(status("member", "Bearer all"), 400) << "whose request is it?";
}

struct SightRow {
  const char* path;   // of openapi.yaml
  const char* own;    // the same of team A
  const char* other;  // of the other team; "": names nothing
  int member, stranger;
};
constexpr SightRow kSightRows[] = {
    {"/api/v1/nodes", "/api/v1/nodes", "", 200, 403},
    {"/api/v1/nodes/{name}", "/api/v1/nodes/gpu-1", "", 200, 403},
    {"/api/v1/pods", "/api/v1/pods", "", 200, 403},
    {"/api/v1/pods/{namespace}/{name}", "/api/v1/pods/team-a/one",
     "/api/v1/pods/zebra-ns/zebra-runs", 200, 404},
    {"/api/v1/teams/{name}", "/api/v1/teams/own", "/api/v1/teams/zebra-quota", 200, 403},
    {"/api/v1/gangs", "/api/v1/gangs", "", 200, 403},
    {"/api/v1/gangs/{namespace}/{name}", "/api/v1/gangs/team-a/own-gang",
     "/api/v1/gangs/zebra-ns/zebra-gang", 200, 404},
    {"/api/v1/events", "/api/v1/events", "", 200, 403},
    {"/api/v1/reclaims", "/api/v1/reclaims", "", 200, 403},
    {"/api/v1/reclaims/{name}", "/api/v1/reclaims/of-another-team", "/api/v1/reclaims/zebra-ns",
     404, 403},
    {"/api/v1/quotas", "/api/v1/quotas", "", 200, 403},
    {"/api/v1/budgets", "/api/v1/budgets", "", 200, 403},
    {"/api/v1/burndown/{budget}", "/api/v1/burndown/own-budget", "/api/v1/burndown/zebra-budget",
     200, 403},
    {"/api/v1/ledger", "/api/v1/ledger", "", 200, 403},
    {"/api/v1/ledger/bill", "/api/v1/ledger/bill", "", 403, 403},
    {"/api/v1/ledger/statement", "/api/v1/ledger/statement", "", 403, 403},
    {"/api/v1/opencost/allocation", "/api/v1/opencost/allocation?window=7d", "", 403, 403},
    {"/api/v1/opencost/allocation/compute", "/api/v1/opencost/allocation/compute?window=7d", "",
     403, 403},
    {"/api/v1/ledger/series", "/api/v1/ledger/series", "", 200, 403},
    {"/api/v1/ledger/held", "/api/v1/ledger/held", "", 200, 403},
    {"/api/v1/explain/{namespace}/{pod}", "/api/v1/explain/team-a/waits",
     "/api/v1/explain/zebra-ns/zebra-wants", 200, 404},
    {"/api/v1/forecast", "/api/v1/forecast", "", 200, 403},
    {"/api/v1/forecast/{namespace}/{name}", "/api/v1/forecast/team-a/waits",
     "/api/v1/forecast/zebra-ns/zebra-wants", 200, 404},
    {"/api/v1/rank/{namespace}/{pod}", "/api/v1/rank/team-a/waits",
     "/api/v1/rank/zebra-ns/zebra-wants", 200, 404},
    {"/api/v1/advice", "/api/v1/advice", "", 403, 403},
    {"/api/v1/audit", "/api/v1/audit", "", 403, 403},
    {"/api/v1/profile", "/api/v1/profile?seconds=1", "", 403, 403},
    {"/api/openapi.json", "/api/openapi.json", "", 200, 200},
    {"/version", "/version", "", 200, 200},
};

TEST_F(SightServer, EveryRoleAtEveryPath) {
  std::set<std::string> described;
  const Json openapi = Get("/api/openapi.json");
  for (const auto& [path, methods] : openapi["paths"].items()) {
    if (methods.contains("get") && !path.starts_with("/embedded/")) described.insert(path);
  }
  for (const SightRow& row : kSightRows) {
    SCOPED_TRACE(row.own);
    described.erase(row.path);
    EXPECT_EQ(Raw("member", row.own).status, row.member);
    EXPECT_EQ(Raw("stranger", row.own).status, row.stranger);
    // One who may get /metrics alone is a stranger elsewhere.
    EXPECT_EQ(Raw("metrics", row.own).status, row.stranger);
    EXPECT_EQ(Raw("nobodys", row.own).status, 401);
    const RawReply none = Raw("", row.own);
    EXPECT_EQ(none.status, 401);
    EXPECT_EQ(HeaderOf(none, "WWW-Authenticate"), "Bearer realm=\"kubernetes\"");
    const bool there = std::string_view(row.own) != "/api/v1/reclaims/of-another-team";
    EXPECT_EQ(Raw("all", row.own).status, there ? 200 : 404);
    const bool of_cluster = std::string_view(row.path).starts_with("/api/v1/");
    EXPECT_EQ(openapi["paths"][row.path]["get"].contains("x-filtered"),
              of_cluster && row.member != 403);
  }
  EXPECT_TRUE(described.empty()) << "expected a row for " << *described.begin();
  const std::pair<const char*, int> scrapes[] = {
      {"all", 200}, {"metrics", 200}, {"member", 403}, {"stranger", 403}, {"", 401}};
  for (const auto& [token, status] : scrapes) EXPECT_EQ(Raw(token, "/metrics").status, status);
  for (const char* open : {"/healthz", "/livez", "/readyz", "/ui/"}) {
    EXPECT_EQ(Raw("", open).status, 200) << open;
  }
  const std::string length = "Content-Length: 0\r\n";
  for (const char* question : {"/api/v1/whatif", "/api/v1/plan"}) {
    EXPECT_EQ(Raw("member", question, length, "POST").status, 403) << question;
    EXPECT_EQ(Raw("", question, length, "POST").status, 401) << question;
  }
  EXPECT_EQ(Raw("member", "/api/v1/new-and-unfiltered").status, 403);
}

TEST_F(SightServer, NothingOfAnotherTeamIsInAnyAnswer) {
  int marked = 0;
  EXPECT_THAT(Raw("all", "/api/v1/forecast").body, HasSubstr("because")) << "pods show it from now";
  for (const SightRow& row : kSightRows) {
    SCOPED_TRACE(row.own);
    marked += Raw("all", row.own).body.find(kMark) != std::string::npos ? 1 : 0;
    for (const char* token : {"member", "stranger", "metrics", ""}) {
      const RawReply reply = Raw(token, row.own);
      EXPECT_THAT(reply.head, Not(HasSubstr(kMark))) << token;
      EXPECT_THAT(reply.body, Not(HasSubstr(kMark))) << token;
    }
    // What is another's answers as what is not there.
    if (*row.other == '\0') continue;
    const RawReply there = Raw("member", row.other);
    std::string absent = row.other;
    for (std::size_t at = 0; (at = absent.find(kMark, at)) != std::string::npos;) {
      absent.replace(at, 5, "quagg");
    }
    RawReply not_there = Raw("member", absent);
    EXPECT_EQ(there.status, 404);
    EXPECT_EQ(not_there.status, 404);
    for (std::size_t at = 0; (at = not_there.body.find("quagg", at)) != std::string::npos;) {
      not_there.body.replace(at, 5, kMark);
    }
    EXPECT_EQ(there.body, not_there.body);
  }
  EXPECT_GE(marked, 12) << "the world is one in which something could be told";
  // Lists that name the other team's namespace, alike.
  for (const char* list :
       {"pods", "gangs", "events", "reclaims", "quotas", "budgets", "forecast"}) {
    const std::string target = std::string("/api/v1/") + list + "?namespace=";
    const RawReply other = Raw("member", target + "zebra-ns");
    EXPECT_EQ(other.status, 403) << list;
    EXPECT_EQ(other.body, Raw("member", target + "nowhere").body);
    EXPECT_EQ(Raw("member", target).status, 403) << "no namespace is all of them";
    EXPECT_EQ(Raw("member", target + "team-a").status, 200);
  }
  EXPECT_EQ(Raw("member", "/api/v1/ledger?leaf=zebra-quota").status, 403);
  EXPECT_EQ(Raw("member", "/api/v1/ledger?leaf=").status, 403);
}

TEST_F(SightServer, OnesOwnIsThere) {
  const auto get = [this](const std::string& target) {
    return Json::parse(Raw("member", target).body);
  };
  const Json pods = get("/api/v1/pods")["pods"];
  EXPECT_EQ(pods.size(), 5U);
  for (const Json& pod : pods) EXPECT_EQ(pod["namespace"], "team-a");
  EXPECT_EQ(get("/api/v1/pods?state=placed&limit=1")["total"], 3);
  EXPECT_EQ(get("/api/v1/explain/team-a/waits")["nodes"].size(), 1U);
  // What is foretold of one's own pods is where they are shown, too.
  const Json foretold = get("/api/v1/forecast/team-a/waits");
  EXPECT_EQ(get("/api/v1/explain/team-a/waits")["forecast"]["because"], foretold["because"]);
  EXPECT_EQ(get("/api/v1/pods/team-a/waits")["forecast"]["because"], foretold["because"]);
  const Json waiting = get("/api/v1/pods?state=waiting")["pods"];
  for (const Json& pod : waiting) {
    EXPECT_TRUE(pod.contains("forecast")) << pod["name"];
  }
  EXPECT_EQ(get("/api/v1/gangs")["gangs"].size(), 1U);
  EXPECT_EQ(get("/api/v1/quotas")["quotas"][0]["name"], "own");
  EXPECT_EQ(get("/api/v1/budgets")["budgets"][0]["name"], "own-budget");
  const Json reclaims = get("/api/v1/reclaims")["reclaims"];
  ASSERT_EQ(reclaims.size(), 1U);
  EXPECT_EQ(reclaims[0]["for"], Json({{"namespace", nullptr}, {"name", "a pod of another team"}}));
  ASSERT_EQ(reclaims[0]["victims"].size(), 1U);
  EXPECT_EQ(reclaims[0]["victims"][0]["pod"].get<std::string>().substr(0, 7), "team-a/");
  const Json node = get("/api/v1/nodes")["nodes"][0];
  EXPECT_EQ(node["name"], "gpu-1");
  int held = 0;
  for (const Json& gpu : node["gpus"]) held += static_cast<int>(gpu["pods"].size());
  const Json everything = Get("/api/v1/nodes")["nodes"][0];
  int all_held = 0;
  for (const Json& gpu : everything["gpus"]) all_held += static_cast<int>(gpu["pods"].size());
  EXPECT_LT(held, std::max(all_held, 1));
  const Json ledger = get("/api/v1/ledger");
  for (const Json& row : ledger.at("rows")) EXPECT_EQ(row["leaf"], "own");
  const Json then = get("/api/v1/ledger/held");
  EXPECT_EQ(then["rows"].size(), 3U);
  for (const Json& row : then["rows"]) EXPECT_EQ(row["namespace"], "team-a");
  EXPECT_EQ(Get("/api/v1/ledger/held")["rows"].size(), 4U);
  EXPECT_GE(get("/api/v1/events")["events"].size(), 3U);
}

TEST_F(SightServer, NoAnswerIsSharedBetweenCallers) {
  for (const std::string target : {"/api/v1/pods", "/api/v1/nodes", "/api/v1/quotas"}) {
    SCOPED_TRACE(target);
    const std::string gzip = "Accept-Encoding: gzip\r\n";
    const RawReply all = Raw("all", target);
    const RawReply packed = Raw("all", target, gzip);
    for (const std::string& encoding : {std::string(), gzip}) {
      for (const RawReply& before : {all, packed}) {
        const RawReply own =
            Raw("member", target, encoding + "If-None-Match: " + HeaderOf(before, "ETag") + "\r\n");
        EXPECT_EQ(own.status, 200);
        EXPECT_NE(own.body, before.body);
        EXPECT_NE(HeaderOf(own, "ETag"), HeaderOf(before, "ETag"));
        EXPECT_THAT(HeaderOf(own, "Cache-Control"), HasSubstr("private"));
        EXPECT_THAT(HeaderOf(own, "Vary"), HasSubstr("Authorization, Tranche-Authorization"));
      }
    }
    EXPECT_EQ(Raw("all", target).body, all.body) << "nor the other way round";
    const RawReply own = Raw("member", target);
    EXPECT_EQ(Raw("member", target, "If-None-Match: " + HeaderOf(own, "ETag") + "\r\n").status,
              304);
    EXPECT_EQ(Raw("stranger", target, "If-None-Match: " + HeaderOf(own, "ETag") + "\r\n").status,
              403);
  }
}

TEST_F(SightServer, WithoutTheApiServer) {
  EXPECT_EQ(Raw("member", "/api/v1/pods").status, 200);
  reviews.away = true;
  EXPECT_EQ(Raw("member", "/api/v1/pods").status, 200) << "for the rest of its minute";
  const RawReply closed = Raw("stranger", "/api/v1/pods");
  EXPECT_EQ(closed.status, 503);
  EXPECT_THAT(closed.body, HasSubstr("{\"error\":"));
  EXPECT_EQ(HeaderOf(closed, "Retry-After"), "2");
  EXPECT_EQ(Raw("", "/healthz").status, 200);
}

TEST_F(SightServer, ManyNamespacesHaveToBeNamed) {
  for (int i = 0; i < 20; ++i) {
    Json pod = MakePod("p", {{"nvidia.com/gpu", "1"}});
    pod["metadata"]["namespace"] = "n" + std::to_string(i);
    pod["metadata"]["uid"] = "uid-n" + std::to_string(i);
    Apply(pod);
  }
  const RawReply unnamed = Raw("member", "/api/v1/pods");
  EXPECT_EQ(unnamed.status, 403);
  EXPECT_THAT(unnamed.body, HasSubstr("?namespace="));
  EXPECT_EQ(Raw("member", "/api/v1/pods?namespace=team-a").status, 200);
  EXPECT_EQ(Raw("member", "/api/v1/pods").status, 200) << "it has been named once";
}

TEST_F(SightServer, OversizedTokens) {
  const RawReply huge = Raw(std::string(100'000, 'x'), "/api/v1/pods");
  EXPECT_TRUE(huge.status == 431 || huge.status == 0) << huge.status;
  EXPECT_EQ(Raw(std::string(15'000, 'x'), "/api/v1/pods").status, 401);
  EXPECT_EQ(Raw("a b", "/api/v1/pods").status, 401);
}

}  // namespace THIS_FILE
}  // namespace tranche
