// GPUs that containers share: slots of the kubelet, parts by the records.
#include "scheduler/turns/sharing.h"

#include <gmock/gmock.h>

#include <functional>

#include "scheduler/turns/turns.h"

namespace tranche::agent {
namespace THIS_FILE {

using ::testing::HasSubstr;
using Ids = std::vector<std::string>;

constexpr int64_t kMib = 80'000;

ContainerDevices PartOf(const std::string& container, const std::vector<std::string>& gpus,
                        int64_t milli) {
  ContainerDevices entry{container, {}};
  for (const std::string& gpu : gpus) {
    Device device;
    device.uuid = GpuUuid(gpu);
    device.milli = MilliGpu::Of(milli);
    device.memory = Mebibytes::Of(kMib * milli / 1000);
    entry.devices.push_back(device);
  }
  return entry;
}

// A pod whose container "main" has that part of each of these.
BoundPod Sharer(const std::string& name, const std::vector<std::string>& gpus, int64_t milli) {
  BoundPod pod;
  pod.name = {"team", name};
  pod.uid = PodUid("uid-" + name);
  pod.asking = {{"main", static_cast<int64_t>(gpus.size())}};
  pod.record = Allocation{};
  pod.record->knowledge = Knowledge::kExact;
  pod.record->containers = {PartOf("main", gpus, milli)};
  return pod;
}

KubeletPod Knows(const std::string& name, std::vector<Holding> holdings = {}) {
  return {{"team", name}, std::move(holdings)};
}

// Two cards of three slots, a and b, and one that is given whole.
Look SharedLook(std::vector<BoundPod> pods, std::vector<KubeletPod> kubelet) {
  Look look;
  look.pods = std::move(pods);
  look.kubelet = std::move(kubelet);
  int index = 0;
  for (const char* const gpu : {"a", "b", "w"}) {
    Card card{GpuUuid(gpu), "", index++, kMib};
    card.slots = *gpu == 'w' ? 0 : 3;
    look.cards.push_back(card);
  }
  return look;
}

Offer Slots(int64_t size, Ids keep = {}) {
  return {{"a/slot-1", "a/slot-2", "b/slot-0", "b/slot-1", "b/slot-2", "w"}, std::move(keep), size};
}

TEST(Sharing, AContainerGetsASlotOnTheGpuOfItsPart) {
  const BoundPod other = Sharer("other", {"a"}, 600);
  const Look look = SharedLook({other, Sharer("p", {"b", "a"}, 400)},
                               {Knows("other", {{"main", {"a/slot-0"}}}), Knows("p")});
  Turns turns;
  const auto ids = turns.Open(look, Slots(2));
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, (Ids{"a/slot-1", "b/slot-0"}));
  const auto grant = turns.Close(*ids);
  ASSERT_TRUE(grant && grant->ok());
  EXPECT_EQ((*grant)->parts,
            (std::vector<Part>{{GpuUuid("b"), MilliGpu::Of(400), Mebibytes::Of(32'000)},
                               {GpuUuid("a"), MilliGpu::Of(400), Mebibytes::Of(32'000)}}));
}

TEST(Sharing, RefusesWhatIsNoPartOfTheCard) {
  struct Row {
    const char* what;
    std::function<void(Look&, BoundPod&)> change;
    const char* error;  // empty: it is given
  };
  const Row table[] = {
      {"a part beside another",
       [](Look& look, BoundPod&) { look.pods->push_back(Sharer("q", {"a"}, 500)); }, ""},
      {"records that name more than all",
       [](Look& look, BoundPod&) { look.pods->push_back(Sharer("q", {"a"}, 501)); },
       "1000 thousandths and 80000 MiB of it at most, found 1001 thousandths"},
      {"memory alone",
       [](Look& look, BoundPod& pod) {
         for (Device& device : pod.record->containers[0].devices) device.milli = MilliGpu();
         look.pods->push_back(Sharer("q", {"a"}, 500));
       },
       ""},
      {"more memory than there is",
       [](Look&, BoundPod& pod) {
         pod.record->containers[0].devices[0].memory = Mebibytes::Of(kMib + 1);
       },
       "found 500 thousandths and 80001 MiB"},
      {"an init container that has more than the others after it",
       [](Look& look, BoundPod& pod) {
         pod.asking.insert(pod.asking.begin(), {"load", 1, true});
         pod.record->containers.push_back(PartOf("load", {"a"}, 600));
         look.pods->push_back(Sharer("q", {"a"}, 500));
       },
       "found 1100 thousandths"},
      {"two containers with a part each",
       [](Look&, BoundPod& pod) {
         pod.asking.push_back({"side", 1});
         pod.record->containers.push_back(PartOf("side", {"a"}, 500));
       },
       ""},
      {"a GPU twice for one container",
       [](Look&, BoundPod& pod) {
         pod.asking[0].count = 2;
         pod.record->containers = {PartOf("main", {"a", "a"}, 100)};
       },
       "names GPU a twice"},
      {"a part held by nobody's record",
       [](Look& look, BoundPod&) {
         look.kubelet.push_back(Knows("ghost", {{"main", {"a/slot-0"}}}));
       },
       "pod team/ghost holds a part of it that no record names"},
      {"a part held by its predecessor of the same name",
       [](Look& look, BoundPod&) {
         look.kubelet.push_back(Knows("p", {{"main", {"a/slot-0"}}}));
       },
       "pod team/p holds a part"},
      {"a part of a GPU that is given whole",
       [](Look&, BoundPod& pod) { pod.record->containers = {PartOf("main", {"w"}, 500)}; },
       "names a part of a GPU"},
      {"limits of its own",
       [](Look&, BoundPod& pod) { pod.asking[0].own_variables = {"CUDA_MPS_PIPE_DIRECTORY"}; },
       "sets CUDA_MPS_PIPE_DIRECTORY itself"},
  };
  for (const Row& row : table) {
    Look look = SharedLook({}, {Knows("p")});
    BoundPod pod = Sharer("p", {"a"}, 500);
    row.change(look, pod);
    look.pods->insert(look.pods->begin(), pod);
    Turns turns;
    const auto ids = turns.Open(look, Slots(pod.asking[0].count));
    EXPECT_THAT(std::string(ids.status().message()), HasSubstr(row.error)) << row.what;
    EXPECT_EQ(ids.ok(), std::string_view(row.error).empty()) << row.what << ids.status();
  }
}

// The programs have what their container was given, whatever is written over its record.
TEST(Sharing, ARecordMadeSmallerFreesNothing) {
  struct Row {
    const char* what;
    int64_t now;   // thousandths, in the record of the pod that was served 500
    bool kubelet;  // is a new one
    bool there;    // the pod
    int64_t asks;  // the next pod
    bool given;
  };
  const Row table[] = {
      {"as it was", 500, false, true, 500, true},
      {"smaller", 100, false, true, 600, false},
      {"smaller, and it fits all the same", 100, false, true, 500, true},
      {"smaller, of a new kubelet", 100, true, true, 600, false},
      {"larger", 600, false, true, 500, false},
      {"smaller, and gone", 100, false, false, 1000, true},
  };
  for (const Row& row : table) {
    Turns turns;
    const Look before = SharedLook({Sharer("q", {"a"}, 500)}, {Knows("q")});
    ASSERT_TRUE(turns.Open(before, Slots(1)).ok());
    ASSERT_TRUE(turns.Close({"a/slot-1"})->ok());
    if (row.kubelet) turns.Forget();
    Look look = SharedLook({Sharer("p", {"a"}, row.asks)}, {Knows("p")});
    if (row.there) {
      look.pods->push_back(Sharer("q", {"a"}, row.now));
      look.kubelet.push_back(Knows("q", {{"main", {"a/slot-1"}}}));
    }
    const auto ids = turns.Open(look, {{"a/slot-0"}, {}, 1});
    EXPECT_EQ(ids.ok(), row.given) << row.what << ": " << ids.status();
  }
}

TEST(Sharing, WithoutAFreeSlotNothingIsGiven) {
  const Look look = SharedLook({Sharer("p", {"a"}, 100)}, {Knows("p")});
  Turns turns;
  EXPECT_THAT(std::string(turns.Open(look, {{"b/slot-0"}, {}, 1}).status().message()),
              HasSubstr("expected 1 of a from the kubelet, found none"));
}

TEST(Sharing, SlotsOfInitContainersAreGivenOn) {
  BoundPod pod = Sharer("p", {"b"}, 500);
  pod.asking.insert(pod.asking.begin(), {"load", 1, true});
  pod.record->containers.push_back(PartOf("load", {"b"}, 500));
  const Look look = SharedLook({pod, Sharer("q", {"b"}, 500)}, {Knows("p")});
  Turns turns;
  ASSERT_EQ(turns.Open(look, Slots(1)).value(), Ids{"b/slot-0"});
  ASSERT_TRUE(turns.Close({"b/slot-0"})->ok());
  EXPECT_TRUE(turns.MayStart(look, {"b/slot-0"}).ok()) << "of an init container no book tells";
  EXPECT_EQ(turns.Open(look, Slots(1, {"b/slot-0"})).value(), Ids{"b/slot-0"});
  EXPECT_TRUE(turns.Close({"b/slot-0"})->ok());
}

TEST(Sharing, AContainerStartsWhereItsRecordAndItsSlotAgree) {
  const auto start = [](const char* slot, int slots) {
    Look look = SharedLook({Sharer("p", {"a"}, 500), Sharer("q", {"a"}, 500)},
                           {Knows("p", {{"main", {slot}}}), Knows("q", {{"main", {"a/slot-1"}}})});
    look.cards[0].slots = slots;
    return std::string(Turns().MayStart(look, {slot}).message());
  };
  EXPECT_EQ(start("a/slot-0", 3), "");
  EXPECT_THAT(start("b/slot-0", 3), HasSubstr("expected the record of container main of pod"));
  EXPECT_THAT(start("a/slot-0", 0), HasSubstr("it is given whole by now"));
  EXPECT_THAT(start("a", 3), HasSubstr("containers share it by now"));
}

TEST(Sharing, TellsTheKubeletOfSlots) {
  Look look = SharedLook({}, {});
  look.cards[1].problem = "it fell off";
  std::string told;
  for (const TellableDevice& one : DevicesOf(look.cards, "")) {
    told += one.id.str() + (one.healthy ? " " : "! ");
  }
  EXPECT_EQ(told, "a/slot-0 a/slot-1 a/slot-2 b/slot-0! b/slot-1! b/slot-2! w ");
}

}  // namespace THIS_FILE
}  // namespace tranche::agent
