// What each caller may ask at each address, as one table.
#include "scheduler/server/access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using Names = std::vector<std::string>;

http::Request RequestFor(const std::string& path, const Names* names,
                         const std::string& authorization) {
  http::Request request;
  request.path = path;
  request.authorization = authorization;
  if (names != nullptr) request.client_names = std::make_shared<const Names>(*names);
  return request;
}

class AccessTest : public testing::Test {
 protected:
  AccessTest()
      : token_file_(std::filesystem::path(testing::TempDir()) /
                    ("access-token-" + std::to_string(::getpid()))) {
    std::ofstream(token_file_) << "secret\n";
  }
  ~AccessTest() override { std::filesystem::remove(token_file_); }

  int StatusOf(Door door, const std::string& path, const Names* names = nullptr,
               const std::string& authorization = "") const {
    Access access(config);
    const auto refusal = access.Refuse(door, RequestFor(path, names, authorization));
    return refusal ? refusal->status : 200;
  }

  const std::filesystem::path token_file_;
  ServeConfig config;
};

TEST_F(AccessTest, VerbsBehindClientCertificates) {
  const Names right = {"other", "kube-scheduler"};
  const Names wrong = {"kube-scheduler.evil", "KUBE-SCHEDULER"};
  const Names nameless = {};
  struct Row {
    const char* path;
    const Names* names;
    int required, optional;  // over TLS
    int plain;               // without TLS, where it is required
  };
  const Row rows[] = {
      {"/scheduler/filter", nullptr, 403, 200, 403},
      {"/scheduler/filter", &wrong, 403, 403, 403},
      {"/scheduler/filter", &nameless, 403, 403, 403},
      {"/scheduler/filter", &right, 200, 200, 403},
      {"/scheduler/bind", nullptr, 403, 200, 403},
      {"/scheduler/bind", &right, 200, 200, 403},
      {"/embedded/v1/apply", nullptr, 403, 200, 403},
      {"/admission/mutate", nullptr, 200, 200, 200},
      {"/admission/validate", &wrong, 200, 200, 200},
      {"/metrics", nullptr, 200, 200, 200},
      {"/api/v1/nodes", &wrong, 200, 200, 200},
      {"/healthz", nullptr, 200, 200, 200},
      {"/readyz", &wrong, 200, 200, 200},
  };
  config.tls.emplace();
  config.allowed_clients = {"kube-scheduler"};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.path);
    config.verbs_need_tls = true;
    EXPECT_EQ(StatusOf(Door::kTls, row.path, row.names), row.required);
    EXPECT_EQ(StatusOf(Door::kPlain, row.path), row.plain);
    config.verbs_need_tls = false;
    EXPECT_EQ(StatusOf(Door::kTls, row.path, row.names), row.optional);
    EXPECT_EQ(StatusOf(Door::kPlain, row.path), 200);
  }
  // Without a list everybody whose certificate the CA has signed.
  config.allowed_clients.clear();
  config.verbs_need_tls = true;
  EXPECT_EQ(StatusOf(Door::kTls, "/scheduler/filter", &wrong), 200);
  EXPECT_EQ(StatusOf(Door::kTls, "/scheduler/filter", nullptr), 403);
}

TEST_F(AccessTest, PagesOnTheirOwnAddressWithAToken) {
  config.tls.emplace();
  config.pages_address = "127.0.0.1";
  config.pages_token_file = token_file_;
  config.probes_address = "127.0.0.1";
  ASSERT_TRUE(Access(config).Check().ok());
  struct Row {
    const char* path;
    const char* authorization;
    int pages, plain, tls;
  };
  const Row rows[] = {
      {"/metrics", "", 401, 401, 404},
      {"/metrics", "Bearer secret", 200, 200, 404},
      {"/metrics", "Bearer secreT", 401, 401, 404},
      {"/metrics", "Bearer secret2", 401, 401, 404},
      {"/metrics", "bearer secret", 401, 401, 404},
      {"/metrics", "Bearer ", 401, 401, 404},
      {"/api/v1/pods", "", 401, 401, 404},
      {"/ui/", "Bearer secret", 200, 200, 404},
      {"/ui/", "", 200, 200, 404},  // where its reader types the token
      {"/version", "", 401, 401, 404},
      {"/healthz", "", 200, 200, 200},
      {"/livez", "", 200, 200, 200},
      {"/readyz", "", 200, 200, 200},
      {"/scheduler/filter", "Bearer secret", 404, 200, 200},
      {"/admission/mutate", "Bearer secret", 404, 200, 200},
      {"/embedded/v1/apply", "Bearer secret", 404, 200, 200},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.path) + " " + row.authorization);
    EXPECT_EQ(StatusOf(Door::kPages, row.path, nullptr, row.authorization), row.pages);
    EXPECT_EQ(StatusOf(Door::kPlain, row.path, nullptr, row.authorization), row.plain);
    EXPECT_EQ(StatusOf(Door::kTls, row.path, nullptr, row.authorization), row.tls);
    const std::string path = row.path;
    const bool health = path == "/healthz" || path == "/livez" || path == "/readyz";
    EXPECT_EQ(StatusOf(Door::kProbes, row.path, nullptr, row.authorization), health ? 200 : 404);
  }
}

TEST_F(AccessTest, PagesOfOtherSitesUseNobodysBrowser) {
  const struct {
    const char* address;
    const char* method;
    const char* host;
    bool cross_site;
    int status;
  } rows[] = {
      {"127.0.0.1", "GET", "127.0.0.1:8080", false, 200},
      {"127.0.0.1", "GET", "127.0.0.1:8080", true,
       200},  // a link; the answer is its reader's alone
      {"127.0.0.1", "POST", "127.0.0.1:8080", false, 200},
      {"127.0.0.1", "POST", "127.0.0.1:8080", true, 403},
      {"0.0.0.0", "POST", "gpus.example.com", true, 403},
      {"0.0.0.0", "POST", "gpus.example.com", false, 200},
      {"127.0.0.1", "GET", "rebound.example.com:8080", false, 421},
      {"::1", "GET", "rebound.example.com", false, 421},
      {"127.0.0.1", "GET", "127.0.0.1.example.com", false, 421},
      {"127.0.0.1", "GET", "localhost:8080", false, 200},
      {"127.0.0.1", "GET", "tranche.localhost", false, 200},
      {"127.0.0.1", "GET", "workstation", false, 200},
      {"127.0.0.1", "GET", "[::1]:8080", false, 200},
      {"127.0.0.1", "GET", "", false, 200},  // HTTP/1.0
  };
  for (const auto& [address, method, host, cross_site, status] : rows) {
    SCOPED_TRACE(std::string(method) + " " + host + " at " + address);
    config.address = address;
    http::Request request = RequestFor("/api/v1/whatif", nullptr, "");
    request.method = method;
    request.host = host;
    request.cross_site = cross_site;
    const auto refusal = Access(config).Refuse(Door::kPlain, request);
    EXPECT_EQ(refusal ? refusal->status : 200, status);
  }
}

TEST_F(AccessTest, BodiesAreAsLargeAsTheirPathNeeds) {
  constexpr std::size_t kMiB = 1024 * 1024;
  const struct {
    const char* path;
    std::size_t most;
  } rows[] = {
      {"/api/v1/pods", 64 * 1024},
      {"/nothing", 64 * 1024},
      {"/healthz", 64 * 1024},
      {"/ui/", 64 * 1024},
      {"/api/v1/whatif", kMiB},
      {"/api/v1/whatif/", 64 * 1024},
      {"/admission/validate", 32 * kMiB},
      {"/scheduler/filter", 7 * kMiB},
      {"/embedded/v1/apply", 7 * kMiB},
  };
  config.limits.body_bytes = 7 * kMiB;
  Access access(config);
  for (const auto& [path, most] : rows) {
    EXPECT_EQ(access.Judge(Door::kPlain, RequestFor(path, nullptr, "")).body_bytes, most) << path;
  }
}

TEST_F(AccessTest, VerbsAdmissionAndPagesHaveBudgetsOfTheirOwn) {
  Access access(config);
  const auto judge = [&](const char* path) {
    return access.Judge(Door::kPlain, RequestFor(path, nullptr, ""));
  };
  std::set<http::ByteBudget*> budgets;
  for (const char* path : {"/scheduler/bind", "/admission/mutate", "/metrics"}) {
    budgets.insert(judge(path).bodies);
    budgets.insert(judge(path).answers);
  }
  EXPECT_EQ(budgets.size(), 6U);
  EXPECT_FALSE(budgets.contains(nullptr));
  EXPECT_EQ(judge("/api/v1/pods").answers, judge("/api/v1/nodes").answers);
}

TEST_F(AccessTest, CallersAreVerifiedByTokenOrCertificate) {
  const Names name = {"me"};
  const struct {
    const char* path;
    const Names* names;
    const char* authorization;
    bool with_token, without_token;
  } rows[] = {
      {"/api/v1/whatif", nullptr, "Bearer secret", true, false},
      {"/api/v1/whatif", nullptr, "Bearer wrong", false, false},
      {"/api/v1/whatif", nullptr, "", false, false},
      {"/api/v1/whatif", &name, "", false, true},
      {"/api/v1/whatif", &name, "Bearer secret", true, true},
      {"/scheduler/bind", &name, "", true, true},
      {"/scheduler/bind", nullptr, "Bearer secret", false, false},
      {"/ui/", nullptr, "Bearer secret", false, false},
  };
  for (const auto& [path, names, authorization, with_token, without_token] : rows) {
    SCOPED_TRACE(std::string(path) + " " + authorization);
    const http::Request head = RequestFor(path, names, authorization);
    config.pages_token_file = token_file_;
    EXPECT_EQ(Access(config).Judge(Door::kTls, head).verified, with_token);
    config.pages_token_file.clear();
    EXPECT_EQ(Access(config).Judge(Door::kTls, head).verified, without_token);
  }
}

TEST_F(AccessTest, ACallerAsksForPagesNoFasterThanTheRate) {
  config.page_requests_per_second = 5;
  CallerRates::TimePoint now{std::chrono::hours(1)};
  Access access(config, [&now] { return now; });
  const auto ask = [&access](const char* peer, const char* path) {
    http::Request head = RequestFor(path, nullptr, "");
    head.peer = peer;
    http::Terms terms = access.Judge(Door::kPlain, head);
    if (!terms.refusal) return std::string("200");
    return std::to_string(terms.refusal->status) + " after " +
           terms.refusal->headers["Retry-After"];
  };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ask("10.0.0.1", "/metrics"), "200") << i;
  EXPECT_EQ(ask("10.0.0.1", "/api/v1/pods"), "429 after 1");
  EXPECT_EQ(ask("10.0.0.1", "/api/v1/whatif"), "429 after 2") << "costs as much as ten";
  for (const char* path : {"/scheduler/filter", "/admission/mutate", "/readyz", "/ui/"}) {
    EXPECT_EQ(ask("10.0.0.1", path), "200") << path;
  }
  EXPECT_EQ(ask("10.0.0.2", "/api/v1/whatif"), "200") << "another caller";
  EXPECT_EQ(ask("10.0.0.2", "/api/v1/pods"), "429 after 1");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ask("127.0.0.1", "/metrics"), "200") << "this machine";
  now += std::chrono::milliseconds(200);
  EXPECT_EQ(ask("10.0.0.1", "/metrics"), "200") << "one more";
  EXPECT_EQ(ask("10.0.0.1", "/metrics"), "429 after 1");
  config.page_requests_per_second = 0;
  Access open(config);
  http::Request head = RequestFor("/metrics", nullptr, "");
  head.peer = "10.0.0.1";
  for (int i = 0; i < 1'000; ++i) ASSERT_FALSE(open.Judge(Door::kPlain, head).refusal);
}

TEST(CallerRatesTest, CallersBeyondThoseThatAreToldApartAreOne) {
  CallerRates::TimePoint now{std::chrono::hours(1)};
  CallerRates rates(1, [&now] { return now; });
  for (std::size_t i = 0; i < CallerRates::kMostCallers; ++i) {
    ASSERT_FALSE(rates.Take(std::to_string(i), 2));
  }
  EXPECT_FALSE(rates.Take("a", 2));
  EXPECT_TRUE(rates.Take("b", 2));
  EXPECT_TRUE(rates.Take("7", 1));
  now += std::chrono::seconds(2);
  EXPECT_FALSE(rates.Take("b", 2)) << "nobody has asked lately";
  EXPECT_FALSE(rates.Take("c", 2));
}

TEST_F(AccessTest, OpensTheDoorsThatHaveSomethingBehindThem) {
  struct Row {
    bool tls, required, pages;
    bool plain_open, tls_open, pages_open;
  };
  const Row rows[] = {
      {false, false, false, true, false, false}, {true, false, false, true, true, false},
      {true, true, false, true, true, false},    {true, false, true, true, true, true},
      {true, true, true, false, true, true},
  };
  for (const Row& row : rows) {
    ServeConfig one;
    if (row.tls) one.tls.emplace();
    one.verbs_need_tls = row.required;
    if (row.pages) one.pages_address = "127.0.0.1";
    const Access access(one);
    EXPECT_EQ(access.IsOpen(Door::kPlain), row.plain_open);
    EXPECT_EQ(access.IsOpen(Door::kTls), row.tls_open);
    EXPECT_EQ(access.IsOpen(Door::kPages), row.pages_open);
  }
}

TEST_F(AccessTest, ATokenThatCannotBeReadIsNamed) {
  config.pages_token_file = token_file_.string() + "-absent";
  const absl::Status checked = Access(config).Check();
  EXPECT_FALSE(checked.ok());
  EXPECT_NE(checked.message().find("pages.tokenFile"), std::string::npos) << checked;
  std::ofstream(token_file_, std::ios::trunc) << "\n";
  config.pages_token_file = token_file_;
  EXPECT_FALSE(Access(config).Check().ok()) << "an empty token would let everybody in";
}

}  // namespace THIS_FILE
}  // namespace tranche
