#include "scheduler/controllers/mig_config_map.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

constexpr const char* kLayout =
    "tranche-1:\n  - devices: [0]\n    mig-enabled: true\n    mig-devices:\n      \"3g.40gb\": 2\n";

TEST(MigConfigMapTest, AnEmptyFileBecomesOneWithTheEntry) {
  for (const char* empty : {"", " \n\n"}) {
    const auto text = AddMigConfig(empty, "tranche-1", kLayout);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text,
              "version: v1\nmig-configs:\n  tranche-1:\n    - devices: [0]\n      mig-enabled: "
              "true\n      mig-devices:\n        \"3g.40gb\": 2\n");
  }
}

TEST(MigConfigMapTest, WhatOthersWroteStaysByteForByte) {
  const std::string before = "# ours, do not touch\nversion: v1\nmig-configs:  # by name\n";
  const std::string after =
      "    all-disabled:\n    - devices: all\n      device-filter: [\"0x20B010DE\"]\n"
      "      mig-enabled: false\nother: {a: 1}";
  const auto text = AddMigConfig(before + after, "tranche-1", kLayout);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, before +
                       "    tranche-1:\n      - devices: [0]\n        mig-enabled: true\n"
                       "        mig-devices:\n          \"3g.40gb\": 2\n" +
                       after);
}

TEST(MigConfigMapTest, ANameThatIsThereIsNotAddedAgain) {
  const auto once = AddMigConfig("", "tranche-1", kLayout);
  ASSERT_TRUE(once.ok());
  EXPECT_EQ(*AddMigConfig(*once, "tranche-1", kLayout), *once);
}

TEST(MigConfigMapTest, FilesWithoutALineEndOrWithoutEntriesAreTaken) {
  for (const char* file : {"version: v1\nmig-configs:", "mig-configs:\nversion: v1\n"}) {
    const auto text = AddMigConfig(file, "tranche-1", kLayout);
    EXPECT_TRUE(text.ok()) << file << ": " << text.status();
  }
}

TEST(MigConfigMapTest, WhatCannotBeAddedToIsRefusedWithTheReason) {
  const struct {
    const char* file;
    const char* entry;
    const char* message;
  } kCases[] = {
      {"mig-configs: {", kLayout, "expected YAML"},
      {"[]", kLayout, "expected a map with version and mig-configs"},
      {"mig-configs:\n", kLayout, "expected version: v1"},
      {"version: v2\nmig-configs:\n", kLayout, "expected version: v1, found \"v2\""},
      {"version: v1\n", kLayout, "expected a map mig-configs"},
      {"version: v1\nmig-configs: [a]\n", kLayout, "expected a map mig-configs"},
      {"version: v1\nmig-configs: {a: []}\n", kLayout,
       "expected mig-configs: on a line of its own"},
      {"", "tranche-2: []\n", "expected one entry \"tranche-1\""},
      {"", "tranche-1: 3\n", "expected one entry \"tranche-1\""},
      {"", "tranche-1: []\nmore: []\n", "expected one entry \"tranche-1\""},
  };
  for (const auto& c : kCases) {
    const auto text = AddMigConfig(c.file, "tranche-1", c.entry);
    ASSERT_FALSE(text.ok()) << c.file;
    EXPECT_NE(std::string(text.status().message()).find(c.message), std::string::npos)
        << c.file << ": " << text.status();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
