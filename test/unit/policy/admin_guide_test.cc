// The examples of scheduler/docs/admin-guide.md: whoever copies one gets objects that are accepted.
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "policy/decode.h"
#include "scheduler/embedded/manifest.h"
#include "scheduler/wire/json/json.h"
#include "test/fakes/places.h"

namespace tranche {
namespace THIS_FILE {

constexpr std::string_view kFence = "```";

std::string ReadGuide() {
  std::ifstream stream(fakes::SourceFolder() + "/scheduler/docs/admin-guide.md", std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// What stands between a line "```yaml" and the next "```".
std::vector<std::string> YamlBlocks(std::string_view text) {
  constexpr std::string_view kBegin = "\n```yaml\n";
  std::vector<std::string> blocks;
  for (size_t at = text.find(kBegin); at != std::string_view::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    const size_t end = text.find(kFence, at);
    EXPECT_NE(end, std::string_view::npos) << "expected a block to end, from " << at;
    if (end == std::string_view::npos) break;
    blocks.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return blocks;
}

TEST(AdminGuide, EveryExampleIsAccepted) {
  std::set<std::string, std::less<>> shown;
  for (const std::string& block : YamlBlocks(ReadGuide())) {
    const auto document = embedded::Document::Parse(block);
    ASSERT_TRUE(document.ok()) << document.status() << '\n' << block;
    wire::Array objects;
    ASSERT_EQ(document->root().get(objects), simdjson::SUCCESS) << block;
    for (const wire::Element element : objects) {
      wire::Object object;
      ASSERT_EQ(element.get(object), simdjson::SUCCESS) << block;
      const auto version = wire::FindText(object, "apiVersion").value_or("");
      if (version != "tranche.dev/v1alpha1") {
        EXPECT_EQ(version, "scheduling.k8s.io/v1") << block;
        continue;
      }
      const auto kind = wire::FindText(object, "kind").value_or("");
      const absl::Status status = CheckObject(kind, simdjson::minify(object), GpuPolicy{});
      EXPECT_TRUE(status.ok()) << status << '\n' << block;
      shown.emplace(kind);
    }
  }
  EXPECT_EQ(shown, (std::set<std::string, std::less<>>{"GPUBudget", "GPUClass", "GPUPolicy",
                                                       "GPUPool", "GPUPrice", "GPUQuota"}));
}

}  // namespace THIS_FILE
}  // namespace tranche
