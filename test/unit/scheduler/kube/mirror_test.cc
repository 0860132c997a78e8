#include "scheduler/kube/watch/mirror.h"

#include <gtest/gtest.h>

namespace tranche::kube {
namespace THIS_FILE {

// Writes down what it is told; an object with `"bad":true` cannot be read.
class RecordingSink : public ObjectSink {
 public:
  Decoded Decode(wire::Element object, const Identity& identity, bool known) override {
    Decoded out;
    wire::Object root;
    EXPECT_EQ(object.get(root), simdjson::SUCCESS);
    if (wire::FindBool(root, "bad").value_or(false)) {
      out.problem = "bad";
      told.push_back(known ? "bad known " + identity.uid : "bad new " + identity.uid);
    } else {
      out.deliver = [this, identity] { told.push_back(identity.key + " " + identity.uid); };
    }
    return out;
  }
  void Gone(const Identity& identity) override {
    told.push_back("gone " + identity.key + " " + identity.uid);
  }
  void Commit() override { ++commits; }
  void Heard() override {}
  void Listed() override { ++lists; }

  std::vector<std::string> Take() { return std::exchange(told, {}); }

  std::vector<std::string> told;
  int commits = 0;
  int lists = 0;
};

using Lines = std::vector<std::string>;

class MirrorTest : public ::testing::Test {
 protected:
  wire::Element Object(const std::string& name, const std::string& uid, const std::string& version,
                       const std::string& more = "") {
    text_ = R"({"metadata":{"namespace":"ns","name":")" + name + R"(","uid":")" + uid +
            R"(","resourceVersion":")" + version + "\"}" + more + "}";
    return parser_.Parse(text_).value();
  }
  void Change(const std::string& name, const std::string& uid, const std::string& version,
              const std::string& more = "") {
    ASSERT_TRUE(mirror_.Changed({Object(name, uid, version, more), ""}).ok());
  }
  void Delete(const std::string& name, const std::string& uid) {
    ASSERT_TRUE(mirror_.Deleted(Object(name, uid, "9")).ok());
  }
  struct Row {
    const char* name;
    const char* uid;
    const char* version;
  };
  void List(const std::vector<Row>& rows) {
    Mirror::List list;
    for (const Row& row : rows) {
      ASSERT_TRUE(mirror_.Collect(list, {Object(row.name, row.uid, row.version), ""}).ok());
    }
    mirror_.Replace(std::move(list));
  }

  std::string text_;
  wire::Parser parser_;
  RecordingSink sink_;
  Mirror mirror_{"things", sink_};
};

TEST_F(MirrorTest, TellsNothingBeforeAListIsComplete) {
  Mirror::List list;
  ASSERT_TRUE(mirror_.Collect(list, {Object("a", "u1", "1"), ""}).ok());
  EXPECT_EQ(sink_.Take(), Lines{});
  mirror_.Replace(std::move(list));
  EXPECT_EQ(sink_.lists, 1) << "handed over as a whole";
  EXPECT_EQ(sink_.Take(), Lines{"ns/a u1"});
  EXPECT_EQ(sink_.commits, 1);
}

TEST_F(MirrorTest, TellsOfNewObjectsBeforeVanishedOnesAndSkipsUnchangedOnes) {
  List({{"a", "u1", "1"}, {"b", "u2", "1"}, {"c", "u3", "1"}});
  sink_.Take();
  List({{"b", "u2", "1"}, {"c", "u3", "5"}, {"d", "u4", "6"}});
  EXPECT_EQ(sink_.Take(), (Lines{"ns/c u3", "ns/d u4", "gone ns/a u1"}));
}

TEST_F(MirrorTest, ReplacesANamesakeInAListOldUidFirst) {
  List({{"a", "u1", "1"}});
  sink_.Take();
  List({{"a", "u2", "5"}});
  EXPECT_EQ(sink_.Take(), (Lines{"gone ns/a u1", "ns/a u2"}));
}

TEST_F(MirrorTest, ReplacesANamesakeInAnEventOldUidFirst) {
  Change("a", "u1", "1");
  sink_.Take();
  Change("a", "u2", "5");
  EXPECT_EQ(sink_.Take(), (Lines{"gone ns/a u1", "ns/a u2"}));
}

TEST_F(MirrorTest, IgnoresTheDeletionOfAnotherUidAndOfWhatItNeverSaw) {
  Change("a", "u2", "1");
  sink_.Take();
  Delete("a", "u1");
  Delete("b", "u3");
  EXPECT_EQ(sink_.Take(), Lines{});
  Delete("a", "u2");
  EXPECT_EQ(sink_.Take(), Lines{"gone ns/a u2"});
}

TEST_F(MirrorTest, KeepsAnObjectThatTurnsUnreadable) {
  Change("a", "u1", "1");
  Change("a", "u1", "2", R"(,"bad":true)");
  Change("b", "u2", "3", R"(,"bad":true)");
  EXPECT_EQ(sink_.Take(), (Lines{"ns/a u1", "bad known u1", "bad new u2"}));
  List({{"a", "u1", "2"}, {"b", "u2", "3"}});
  EXPECT_EQ(sink_.Take(), Lines{});
  EXPECT_EQ(mirror_.undecodable(), 2);
  EXPECT_EQ(mirror_.unreadable(), 2);
  Change("b", "u2", "4");
  EXPECT_EQ(mirror_.unreadable(), 1);
  EXPECT_EQ(sink_.Take(), Lines{"ns/b u2"});
  List({});
  EXPECT_EQ(sink_.Take(), (Lines{"gone ns/a u1", "gone ns/b u2"}));
  EXPECT_EQ(mirror_.unreadable(), 0);
}

TEST_F(MirrorTest, ForgetsNothingByAnIncompleteList) {
  List({{"a", "u1", "1"}, {"b", "u2", "1"}});
  sink_.Take();
  Mirror::List list;
  ASSERT_TRUE(mirror_.Collect(list, {Object("b", "u3", "5"), ""}).ok());
  list.incomplete = true;
  mirror_.Replace(std::move(list));
  EXPECT_EQ(sink_.Take(), (Lines{"gone ns/b u2", "ns/b u3"}));
  EXPECT_TRUE(mirror_.known().contains("ns/a"));
}

TEST_F(MirrorTest, ChangesNothingForAnObjectWithoutIdentity) {
  Change("a", "u1", "1");
  sink_.Take();
  for (const char* text : {"{}", "[]", R"({"metadata":{"name":"a"}})",
                           R"({"metadata":{"name":"a","uid":"","resourceVersion":"1"}})"}) {
    const wire::Element object = parser_.Parse(text).value();
    EXPECT_EQ(mirror_.Changed({object, ""}).code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(mirror_.Deleted(object).code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(sink_.Take(), Lines{});
}

TEST_F(MirrorTest, CountsAsDriftOnlyWhatNoEventTouched) {
  Change("same", "u1", "1");
  Change("missed-delete", "u2", "1");
  Change("missed-change", "u3", "1");
  Change("late", "u4", "1");
  mirror_.StartTouching();
  Change("late", "u4", "7");
  Change("born-during", "u5", "8");
  const ObjectVersions fresh = {{"ns/same", {"u1", "1", false, false}},
                                {"ns/missed-change", {"u3", "2", false, false}},
                                {"ns/missed-add", {"u6", "3", false, false}},
                                {"ns/late", {"u4", "6", false, false}}};
  EXPECT_EQ(mirror_.Differences(fresh),
            (Lines{"ns/missed-add", "ns/missed-change", "ns/missed-delete"}));
  mirror_.StopTouching();
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
