// What is told of changes of our objects, and when somebody's name with it.
#include "scheduler/host/edit_trail.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

std::string Quota(const std::string& spec) {
  return R"({"kind":"GPUQuota","metadata":{"name":"q"},"spec":)" + spec + "}";
}

TEST(EditTrailTest, TellsWhatChangedAndWhoAReviewNamed) {
  EditTrail trail;
  const auto changed = [&trail](const std::string& spec) {
    return trail.Changed("GPUQuota", "q", Quota(spec));
  };
  EXPECT_EQ(changed(R"({"a":1,"b":2})"), "GPUQuota q: created");
  EXPECT_EQ(changed(R"({"b":2,"a":1})"), "") << "the same";
  trail.Reviewed("GPUQuota", "q", R"({ "b": 2, "a": 3 })", "alice");
  EXPECT_EQ(changed(R"({"a":3,"b":2})"), "GPUQuota q: a 1 -> 3, by alice as its review says");
  EXPECT_EQ(changed(R"({"a":1,"b":2})"), "GPUQuota q: a 3 -> 1");
  EXPECT_EQ(changed(R"({"a":3,"b":2})"), "GPUQuota q: a 1 -> 3") << "one review, one change";
  trail.Reviewed("GPUQuota", "q", R"({"a":4,"b":2})", "alice");
  EXPECT_EQ(changed(R"({"a":5,"b":2})"), "GPUQuota q: a 3 -> 5") << "what came is another's";
  trail.Reviewed("GPUQuota", "other", R"({"a":6,"b":2})", "alice");
  EXPECT_EQ(changed(R"({"a":6,"b":2})"), "GPUQuota q: a 5 -> 6");
  trail.Reviewed("GPUQuota", "q", "", "bob");
  EXPECT_EQ(trail.Gone("GPUQuota", "q"), "GPUQuota q: deleted, by bob as its review says");
  EXPECT_EQ(trail.Gone("GPUQuota", "q"), "") << "it was not known";
}

TEST(EditTrailTest, KeepsWithinItsBounds) {
  EditTrail trail;
  const std::string large = R"({"a":")" + std::string(EditTrail::kMostSpecBytes, 'x') + R"("})";
  trail.Reviewed("GPUQuota", "q", large, "alice");
  EXPECT_EQ(trail.Changed("GPUQuota", "q", Quota(large)), "GPUQuota q: created");
  EXPECT_EQ(trail.Changed("GPUQuota", "q", Quota(R"({"a":1})")), "GPUQuota q: its spec");
  EXPECT_EQ(trail.Changed("GPUQuota", "q", Quota(R"({"a":2})")), "GPUQuota q: a 1 -> 2");
  trail.Reviewed("GPUQuota", "q", R"({"a":3})", std::string(500, 'u'));
  const std::string said = trail.Changed("GPUQuota", "q", Quota(R"({"a":3})"));
  EXPECT_EQ(said, "GPUQuota q: a 2 -> 3, by " + std::string(EditTrail::kMostUserBytes, 'u') +
                      " as its review says");
  trail.Reviewed("GPUQuota", "q", R"({"a":4})", "alice");
  for (std::size_t i = 0; i < EditTrail::kMostReviews; ++i) trail.Reviewed("GPUClass", "c", "", "");
  EXPECT_EQ(trail.Changed("GPUQuota", "q", Quota(R"({"a":4})")), "GPUQuota q: a 3 -> 4");
  EXPECT_EQ(trail.Changed("GPUQuota", "bare", "{}"), "GPUQuota bare: created");
  EXPECT_EQ(trail.Changed("GPUQuota", "odd", "no JSON"), "GPUQuota odd: created");
}

}  // namespace THIS_FILE
}  // namespace tranche
