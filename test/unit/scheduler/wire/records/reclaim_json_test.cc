// GPUReclaim objects: what is written, that it comes back whole, and that the schema takes it.
#include "scheduler/wire/records/reclaim_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include "policy/decode.h"
#include "scheduler/embedded/manifest.h"
#include "scheduler/wire/json/json.h"
#include "test/fakes/places.h"

namespace tranche::wire {
namespace THIS_FILE {

Instant At(int64_t millis) { return Instant(Millis(1'767'323'045'000 + millis)); }

std::string ObjectOf(const Reclaim& reclaim) {
  return fmt::format(R"({{"apiVersion":"tranche.dev/v1alpha1","kind":"GPUReclaim","metadata":)"
                     R"({{"name":"{}"}},{},{}}})",
                     reclaim.name, EncodeReclaimSpec(reclaim), EncodeReclaimStatus(reclaim));
}

ReclaimVictim VictimOf(PodName pod, std::string_view uid, std::string_view node) {
  ReclaimVictim victim;
  victim.pod = std::move(pod);
  victim.uid = PodUid(uid);
  victim.node = NodeName(node);
  return victim;
}

Reclaim OfAGang() {
  Reclaim reclaim;
  reclaim.name = "r-1";
  reclaim.rule = ReclaimRule::kR1;
  reclaim.members = {{{"prod", "serve-0"}, PodUid("u0"), NodeName("gpu-1"), true},
                     {{"prod", "serve-1"}, PodUid("u1"), NodeName("gpu-2"), false}};
  reclaim.leaf = "prod";
  reclaim.phase = ReclaimPhase::kEvicting;
  ReclaimVictim gone = VictimOf({"b", "train-2"}, "v2", "gpu-1");
  gone.gang = "train";
  gone.owner = "job-7";
  gone.leaf = "team-b";
  gone.state = QuotaState::kBorrowed;
  gone.lost_gpu_ms = 1'920'001;
  gone.checkpoint = At(-300'000);
  gone.grace = Millis(1'500);
  gone.evicted_at = At(10);
  gone.gone_at = At(2'000);
  gone.again = true;
  ReclaimVictim next = VictimOf({"b", "note"}, "v3", "gpu-2");
  next.state = QuotaState::kScavenging;
  reclaim.victims = {gone, next};
  reclaim.cost = {1, 2, 0, 1, 0, 1'920'001, 2, 18'018'000, {}};
  reclaim.optimal = true;
  reclaim.evaluations = 77;
  reclaim.snapshot = 88'123;
  reclaim.planned_at = At(0);
  reclaim.version = 5;
  return reclaim;
}

TEST(ReclaimJson, WritesWhatPeopleRead) {
  EXPECT_EQ(EncodeReclaimSpec(OfAGang()),
            R"("spec":{"for":{"kind":"Pod","namespace":"prod","name":"serve-0","uid":"u0"},)"
            R"("rule":"R1","snapshot":88123,"leaf":"prod","members":[)"
            R"({"namespace":"prod","name":"serve-0","uid":"u0","node":"gpu-1"},)"
            R"({"namespace":"prod","name":"serve-1","uid":"u1","node":"gpu-2"}]})");
  EXPECT_EQ(
      EncodeReclaimStatus(OfAGang()),
      R"("status":{"phase":"Evicting","placed":["u0"],"victims":[)"
      R"({"pod":"b/train-2","uid":"v2","node":"gpu-1","gang":"train","owner":"job-7",)"
      R"("leaf":"team-b","state":"borrowed","lostGpuSeconds":1921,"lostGpuMillis":1920001,)"
      R"("lastCheckpoint":"2026-01-02T02:59:05Z","graceSeconds":2,"graceMillis":1500,)"
      R"("evictedAt":"2026-01-02T03:04:05.010Z","goneAt":"2026-01-02T03:04:07Z","again":true},)"
      R"({"pod":"b/note","uid":"v3","node":"gpu-2","state":"scavenging","lostGpuSeconds":0,)"
      R"("lostGpuMillis":0}],"cost":[1,2,0,1,0,1921,2,18018000],"lostGpuMillis":1920001,)"
      R"("search":{"result":"optimal","evaluations":77},"version":5,)"
      R"("plannedAt":"2026-01-02T03:04:05Z",)"
      R"("summary":{"for":"prod/serve-0 and 1 more","victims":"1 of 2 gone","lost":"1921"}})");
}

TEST(ReclaimJson, ReleasesAreForAnObject) {
  Reclaim reclaim;
  reclaim.name = "r-2";
  reclaim.rule = ReclaimRule::kDrain;
  reclaim.source = "team-a-monthly";
  EXPECT_EQ(EncodeReclaimSpec(reclaim),
            R"("spec":{"for":{"kind":"GPUBudget","name":"team-a-monthly"},"rule":"Drain",)"
            R"("snapshot":0,"members":[]})");
  EXPECT_EQ(DecodeReclaim(ObjectOf(reclaim)).value(), reclaim);
  reclaim.rule = ReclaimRule::kShrink;
  reclaim.source = "team-a";
  EXPECT_NE(EncodeReclaimSpec(reclaim).find(R"("kind":"GPUQuota","name":"team-a")"),
            std::string::npos);
  EXPECT_EQ(DecodeReclaim(ObjectOf(reclaim)).value(), reclaim);
  reclaim.rule = ReclaimRule::kGang;
  reclaim.source = "prod/Train_1/run";
  EXPECT_NE(EncodeReclaimSpec(reclaim).find(
                R"("for":{"kind":"Gang","namespace":"prod","name":"Train_1/run"})"),
            std::string::npos)
      << "a namespace and a name, as the definition wants them";
  EXPECT_EQ(DecodeReclaim(ObjectOf(reclaim)).value(), reclaim);
  reclaim.rule = ReclaimRule::kMaxRuntime;
  reclaim.source = "notebook";
  EXPECT_NE(EncodeReclaimSpec(reclaim).find(R"("kind":"GPUClass","name":"notebook")"),
            std::string::npos);
  EXPECT_EQ(DecodeReclaim(ObjectOf(reclaim)).value(), reclaim);
  reclaim.rule = ReclaimRule::kMaintenance;
  reclaim.source = "h200-spot";
  EXPECT_NE(EncodeReclaimSpec(reclaim).find(R"("kind":"GPUPool","name":"h200-spot")"),
            std::string::npos);
  EXPECT_EQ(DecodeReclaim(ObjectOf(reclaim)).value(), reclaim);
}

// ---- any reclaim --------------------------------------------------------------------------------

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int64_t Below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random_); }
  bool Coin() { return Below(2) == 0; }
  std::string Text() {
    const std::string_view texts[] = {"", "x", "a-b.c", "\"quoted\\\n\"", "\u00e9\u4e2d", "a/b"};
    return std::string(texts[Below(std::size(texts))]);
  }
  std::string Name() { return fmt::format("n-{}", Below(1000)); }
  std::optional<Instant> Time() {
    if (Coin()) return std::nullopt;
    return At(Below(1'000'000'000));
  }

 private:
  std::mt19937_64 random_;
};

ReclaimVictim AnyVictim(Dice& dice) {
  ReclaimVictim victim = VictimOf({dice.Name(), dice.Name()}, dice.Name(), dice.Text());
  victim.gang = dice.Text();
  victim.owner = dice.Text();
  victim.leaf = dice.Text();
  victim.state = static_cast<QuotaState>(dice.Below(3));
  victim.lost_gpu_ms = dice.Below(1'000'000'000'000);
  victim.checkpoint = dice.Time();
  if (dice.Coin()) victim.grace = Millis(dice.Below(1'000'000));
  victim.evicted_at = dice.Time();
  victim.gone_at = dice.Time();
  victim.again = dice.Coin();
  return victim;
}

Reclaim AnyReclaim(Dice& dice) {
  Reclaim reclaim;
  reclaim.name = dice.Name();
  reclaim.rule =
      static_cast<ReclaimRule>(1 + dice.Below(static_cast<int64_t>(ReclaimRule::kUnhealthy)));
  if (reclaim.rule >= ReclaimRule::kDrain) {
    reclaim.source = dice.Name();
    if (reclaim.rule == ReclaimRule::kGang) reclaim.source += "/" + dice.Name();
  } else {
    for (int64_t i = 0; i <= dice.Below(4); ++i) {
      reclaim.members.push_back({{dice.Name(), dice.Name()},
                                 PodUid(fmt::format("{}-{}", dice.Name(), i)),
                                 NodeName(dice.Text()),
                                 dice.Coin()});
    }
  }
  reclaim.leaf = dice.Text();
  reclaim.phase = static_cast<ReclaimPhase>(dice.Below(5));
  reclaim.reason = dice.Text();
  for (int64_t i = 0; i < dice.Below(5); ++i) reclaim.victims.push_back(AnyVictim(dice));
  reclaim.cost = {dice.Below(9),
                  dice.Below(9) - 1,
                  dice.Below(1'000'000'000'000),
                  dice.Below(9),
                  dice.Below(9),
                  dice.Below(1'000'000'000'000),
                  dice.Below(99),
                  dice.Below(1'000'000'000'000),
                  {}};
  if (*reclaim.cost.rank < 0) reclaim.cost.rank.reset();  // no victims
  reclaim.optimal = dice.Coin();
  reclaim.evaluations = dice.Below(1'000'000);
  reclaim.snapshot = static_cast<uint64_t>(dice.Below(1'000'000));
  reclaim.planned_at = At(dice.Below(1'000'000'000));
  reclaim.reserved_at = dice.Time();
  reclaim.finished_at = dice.Time();
  reclaim.version = static_cast<uint64_t>(dice.Below(1'000'000));
  return reclaim;
}

TEST(ReclaimJson, ARoundTripKeepsEverythingButTheOrderOfTheCost) {
  EXPECT_EQ(DecodeReclaim(ObjectOf(OfAGang())).value(), OfAGang());
  Dice dice(20260102);
  for (int i = 0; i < 2'000; ++i) {
    Reclaim reclaim = AnyReclaim(dice);
    const absl::StatusOr<Reclaim> read = DecodeReclaim(ObjectOf(reclaim));
    ASSERT_TRUE(read.ok()) << read.status() << "\n" << ObjectOf(reclaim);
    ASSERT_EQ(*read, reclaim) << ObjectOf(reclaim);
    reclaim.cost.order = {{Millis(1), "x"}};
    EXPECT_EQ(DecodeReclaim(ObjectOf(reclaim)).value(), *read);
  }
}

// ---- the schema ---------------------------------------------------------------------------------

// As much of an OpenAPI schema as ours use: what the API server would say of a value, empty if it
// takes it. Unknown fields are mistakes, for it would drop them silently.
std::string Judge(Element value, Object schema, const std::string& path) {
  const std::string type(FindText(schema, "type").value_or(""));
  if (type == "object") {
    Object object;
    if (value.get(object) != simdjson::SUCCESS) return path + ": expected an object";
    if (const auto required = FindArray(schema, "required")) {
      for (const Element name : *required) {
        if (!Find(object, name.get_string().value_unsafe())) return path + ": incomplete";
      }
    }
    for (const auto field : object) {
      const std::string inner = path + "." + std::string(field.key);
      const auto properties = FindObject(schema, "properties");
      const auto member = properties ? FindObject(*properties, field.key) : std::nullopt;
      if (!member) return inner + ": unknown";
      if (std::string error = Judge(field.value, *member, inner); !error.empty()) return error;
    }
    return "";
  }
  if (type == "array") {
    Array array;
    if (value.get(array) != simdjson::SUCCESS) return path + ": expected an array";
    if (static_cast<int64_t>(array.size()) > FindInteger(schema, "maxItems").value_or(0)) {
      return path + ": too many items";
    }
    for (const Element item : array) {
      std::string error = Judge(item, *FindObject(schema, "items"), path + "[]");
      if (!error.empty()) return error;
    }
    return "";
  }
  if (type == "string") {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return path + ": expected text";
    if (const auto choices = FindArray(schema, "enum")) {
      const bool known = std::any_of(choices->begin(), choices->end(), [&](Element choice) {
        return choice.get_string().value_unsafe() == text;
      });
      if (!known) return path + ": unknown value " + std::string(text);
    }
    const auto most = FindInteger(schema, "maxLength");
    if (most && static_cast<int64_t>(text.size()) > *most) return path + ": too long";
    const bool time = FindText(schema, "format") == "date-time";
    return time && !ParseTime(text) ? path + ": expected a time" : "";
  }
  if (type == "integer") {
    int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS) return path + ": expected a whole number";
    const auto least = FindInteger(schema, "minimum");
    return least && number < *least ? path + ": too small" : "";
  }
  return type == "boolean" && value.is_bool() ? "" : path + ": expected " + type;
}

TEST(ReclaimJson, TheSchemaTakesWhatWeWrite) {
  const std::filesystem::path file =
      std::filesystem::path(fakes::SourceFolder()) / "charts/tranche/crds/gpureclaims.yaml";
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto definition = embedded::Document::Parse(text);
  ASSERT_TRUE(definition.ok()) << definition.status();
  Object schema;
  ASSERT_EQ(definition->root().at_pointer("/0/spec/versions/0/schema/openAPIV3Schema").get(schema),
            simdjson::SUCCESS);
  Object members;
  ASSERT_EQ(schema["properties"].get(members), simdjson::SUCCESS);
  Dice dice(7);
  for (int i = 0; i < 200; ++i) {
    const Reclaim reclaim = i == 0 ? OfAGang() : AnyReclaim(dice);
    const std::string object = ObjectOf(reclaim);
    EXPECT_TRUE(CheckObject("GPUReclaim", object, GpuPolicy{}).ok())
        << CheckObject("GPUReclaim", object, GpuPolicy{}) << object;
    simdjson::dom::parser parser;
    const Element root = parser.parse(object);
    for (const char* part : {"spec", "status"}) {
      ASSERT_EQ(Judge(root[part], *FindObject(members, part), part), "") << object;
    }
  }
}

// ---- what others may have written ---------------------------------------------------------------

TEST(ReclaimJson, AnObjectWhoseWriterWasCutOffIsPlannedAndHasNoVictims) {
  Reclaim planned = OfAGang();
  const absl::StatusOr<Reclaim> read = DecodeReclaim(
      fmt::format(R"({{"metadata":{{"name":"r-1"}},{}}})", EncodeReclaimSpec(planned)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->phase, ReclaimPhase::kPlanned);
  EXPECT_TRUE(read->victims.empty());
  EXPECT_EQ(read->members.size(), 2U);
  EXPECT_FALSE(read->members[0].placed);
}

TEST(ReclaimJson, RefusesWhatItCannotReadAndSaysWhere) {
  constexpr std::string_view kSpec =
      R"("spec":{"for":{"namespace":"prod","name":"p"},"rule":"R1","members":[)"
      R"({"namespace":"prod","name":"p","uid":"u"}]})";
  const auto with_status = [&](std::string_view status) {
    return fmt::format(R"({{"metadata":{{"name":"r"}},{},"status":{{"phase":"Planned",{}}}}})",
                       kSpec, status);
  };
  EXPECT_TRUE(DecodeReclaim(with_status(R"("reason":"")")).ok());
  const struct {
    std::string json, where;
  } rows[] = {
      {"", "expected JSON"},
      {"[]", "in GPUReclaim"},
      {"{}", "GPUReclaim.metadata"},
      {R"({"metadata":{"name":"r"}})", "GPUReclaim.spec"},
      {R"({"metadata":{"name":"r"},"spec":{"rule":"R4"}})", "spec.rule"},
      {R"({"metadata":{"name":"r"},"spec":{"rule":"R1","for":{"name":"p"}}})", "spec.members"},
      {R"({"metadata":{"name":"r"},"spec":{"rule":"Drain","for":{"kind":"GPUBudget"}}})",
       "spec.for.name"},
      {R"({"metadata":{"name":"r"},"spec":{"rule":"Drain","for":{"name":"b"},"members":[)"
       R"({"namespace":"a","name":"b","uid":"c"}]}})",
       "spec.members"},
      {fmt::format(R"({{"metadata":{{"name":"r"}},{},"status":{{"phase":"Sleeping"}}}})", kSpec),
       "status.phase"},
      {with_status(R"("victims":[{"pod":"p","uid":"v","state":"borrowed"}])"),
       "status.victims.pod"},
      {with_status(R"("victims":[{"pod":"b/p","state":"borrowed"}])"), "status.victims.uid"},
      {with_status(R"("victims":[{"pod":"b/p","uid":"v","state":"lent"}])"),
       "status.victims.state"},
      {with_status(R"("victims":[{"pod":"b/p","uid":"v","state":"borrowed",)"
                   R"("lostGpuMillis":9223372036854775807}])"),
       "status.victims.lostGpuMillis"},
      {with_status(R"("victims":[{"pod":"b/p","uid":"v","state":"borrowed",)"
                   R"("goneAt":"soon"}])"),
       "status.victims.goneAt"},
      {with_status(R"("cost":[1,2,3])"), "status.cost"},
      {with_status(R"("cost":[1,2,3,4,5,6,7,"8"])"), "status.cost"},
      {with_status(R"("version":-1)"), "status.version"},
      {with_status(R"("plannedAt":"now")"), "status.plannedAt"},
  };
  for (const auto& [json, where] : rows) {
    const absl::StatusOr<Reclaim> read = DecodeReclaim(json);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_NE(std::string(read.status().message()).find(where), std::string::npos)
        << read.status() << " for " << json;
  }
}

TEST(ReclaimJson, SurvivesEveryCutAndManyChanges) {
  const std::string object = ObjectOf(OfAGang());
  for (std::size_t cut = 0; cut < object.size(); ++cut) {
    EXPECT_FALSE(DecodeReclaim(std::string_view(object).substr(0, cut)).ok()) << cut;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 3'000; ++i) {
    std::string changed = object;
    changed[random() % changed.size()] = static_cast<char>(random() % 256);
    if (const auto read = DecodeReclaim(changed); read.ok()) ObjectOf(*read);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
