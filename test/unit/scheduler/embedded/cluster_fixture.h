// An embedded cluster that tests apply objects to, and what the engine hears of it.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/embedded/cluster.h"
#include "scheduler/host/clocks.h"
#include "test/unit/scheduler/embedded/recorder.h"

namespace tranche::embedded {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;
using std::chrono::seconds;

inline const Instant kStart = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);

class EmbeddedCluster : public testing::Test {
 protected:
  // Applies, expecting success; the events it caused.
  Lines Applied(const std::string& text) {
    const auto report = cluster_.Apply(text);
    EXPECT_TRUE(report.ok()) << report.status() << "\n" << text;
    return recorder_.Take();
  }
  std::string ApplyError(const std::string& text) {
    const auto report = cluster_.Apply(text);
    EXPECT_TRUE(recorder_.Take().empty()) << "a refused text reached the engine: " << text;
    if (report.ok()) return "no error";
    EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(report.status().message());
  }
  Lines Deleted(const std::string& text) {
    const absl::Status status = cluster_.Delete(text);
    EXPECT_TRUE(status.ok()) << status;
    return recorder_.Take();
  }
  Lines TickedAt(Instant now) {
    cluster_.Tick(now);
    Lines lines = recorder_.Take();
    std::erase_if(lines, [](const std::string& line) { return line.rfind("heard ", 0) == 0; });
    return lines;
  }
  Json Stored(const std::string& kind, const std::string& name) {
    const auto text = cluster_.Get(kind, "default", name);
    return text ? Json::parse(*text) : Json();
  }
  WriteResult Bound(const std::string& name, const std::string& uid, const std::string& node,
                    std::map<std::string, std::string> annotations = {}) {
    std::optional<WriteResult> result;
    cluster_.Bind({{"default", name}, PodUid(uid), NodeName(node), std::move(annotations)},
                  [&](WriteResult r) {
                    recorder_.Note("bind done");
                    result = std::move(r);
                  });
    EXPECT_TRUE(result.has_value());
    return result.value_or(WriteResult{});
  }

  // The answer of `write`, a function that takes a callback.
  template <typename Write>
  static WriteResult Written(Write write) {
    std::optional<WriteResult> result;
    write([&](WriteResult r) { result = std::move(r); });
    EXPECT_TRUE(result.has_value());
    return result.value_or(WriteResult{});
  }

  ManualClock clock_{kStart};
  Recorder recorder_;
  Cluster cluster_{clock_, recorder_, GpuPolicy{}};
};

inline std::string Pod(const std::string& name, const std::string& metadata = "",
                       const std::string& spec = "", const std::string& status = "") {
  return fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"{}}},)"
                     R"("spec":{{"containers":[{{"name":"main"}}]{}}},"status":{{{}}}}})",
                     name, metadata, spec, status);
}
inline std::string Quota(const std::string& name, const std::string& parent = "org") {
  return fmt::format(
      "kind: GPUQuota\napiVersion: tranche.dev/v1alpha1\nmetadata: {{name: {}}}\n"
      "spec: {{parent: {}, lines: [{{model: h200, nominal: {{gpus: \"8\"}}}}]}}\n---\n",
      name, parent);
}
// Over the pods of namespace default with label app=web. `spec` and `members` begin with a comma.
inline std::string DisruptionBudget(const std::string& name, const std::string& spec,
                                    const std::string& members = "") {
  return fmt::format(
      R"({{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"{}"}},)"
      R"("spec":{{"selector":{{"matchLabels":{{"app":"web"}}}}{}}}{}}})",
      name, spec, members);
}
inline const std::string kOnNode = R"(,"nodeName":"n1")";

}  // namespace tranche::embedded
