// What node agents register of a node's cards. HAMi's register is in hami_register_test.cc.
// Source: request-dialects sections 5-12.
#include "scheduler/wire/nodes/agent_registers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scheduler/wire/json/json.h"

namespace tranche::wire {
namespace THIS_FILE {

std::string ErrorOf(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

AgentAmount Amount(const char* key, int64_t count) { return {key, {count, count}}; }

TEST(FourPdRegister, IsHamisTextFormOfAnotherAgent) {
  const auto found = ParseFourPdRegister(
      "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"
      "GPU-1,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,1,false:");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->kind, AgentKind::kFourPd);
  EXPECT_EQ(found->minor, 0);
  ASSERT_EQ(found->devices.size(), 2u);
  EXPECT_EQ(found->devices[0].memory, Mebibytes::Of(32768));
  EXPECT_EQ(found->devices[0].slots, 10);
  EXPECT_EQ(found->devices[0].mode, "hami-core");
  EXPECT_EQ(found->devices[1].index, 1);
  EXPECT_FALSE(found->devices[1].healthy);
  EXPECT_FALSE(ParseFourPdRegister(R"([{"id":"GPU-1"}])").ok()) << "it never wrote JSON";
}

TEST(TrancheRegister, ReadsCardsThatAreGivenWhole) {
  const auto found = ParseTrancheRegister(
      R"({"v":1,"devices":[{"uuid":"GPU-b","index":1,"mib":81559,"healthy":false},)"
      R"({"uuid":"GPU-a","index":0,"mib":81559,"healthy":true}]})");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->agent.kind, AgentKind::kTranche);
  ASSERT_EQ(found->agent.devices.size(), 2u);
  EXPECT_EQ(found->agent.devices[0].uuid, GpuUuid("GPU-a"));
  EXPECT_EQ(found->agent.devices[0].memory, Mebibytes::Of(81559));
  EXPECT_EQ(found->agent.devices[0].cores_percent, 100);
  EXPECT_EQ(found->agent.devices[0].slots, 1);
  EXPECT_TRUE(found->agent.devices[0].healthy);
  EXPECT_FALSE(found->agent.devices[1].healthy);
  EXPECT_EQ(found->problem, "");
  const struct {
    const char* text;
    const char* error;
  } table[] = {
      {"[]", "expected object, found array, in the register"},
      {"{}", "expected 1, found nothing, in the register.v"},
      {R"({"v":2})", "in the register.v"},
      {R"({"v":1,"devices":[{"index":0,"mib":1}]})",
       "expected a uuid, found none, in device 0.uuid"},
      {R"({"v":1,"devices":[{"uuid":"GPU-a","mib":1}]})",
       "expected a whole number, found none, in device 0.index"},
      {R"({"v":1,"devices":[{"uuid":"a","index":0,"mib":1},{"uuid":"a","index":1,"mib":1}]})", "a"},
  };
  for (const auto& row : table) {
    const std::string error = ErrorOf(ParseTrancheRegister(row.text).status());
    EXPECT_NE(error.find(row.error), std::string::npos) << row.text << ": " << error;
  }
}

TEST(TrancheRegister, SaysHowManyMayShareACard) {
  const auto text = [](const char* mps) {
    return fmt::format(
        R"({{"v":1,"devices":[{{"uuid":"GPU-a","index":0,"mib":80951,"healthy":true,"mps":{}}}]}})",
        mps);
  };
  const auto found = ParseTrancheRegister(text(R"({"slots":16})"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->agent.devices.at(0).mode, "mps");
  EXPECT_EQ(found->agent.devices.at(0).slots, 16);
  for (const char* const wrong : {"16", "{}", R"({"slots":0})", R"({"slots":49})"}) {
    const std::string error = ErrorOf(ParseTrancheRegister(text(wrong)).status());
    EXPECT_NE(error.find("in device 0.mps"), std::string::npos) << wrong << ": " << error;
  }
}

TEST(TrancheRegister, TellsWhyACardIsClosed) {
  const auto found = ParseTrancheRegister(
      R"({"v":1,"devices":[{"uuid":"GPU-a","index":0,"mib":81559,"healthy":true},)"
      R"({"uuid":"GPU-c","index":2,"mib":81559,"healthy":false,"problem":"XID 79"}]})");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->problem, "GPU 2 (GPU-c): XID 79");
}

TEST(TrancheRegister, SaysWhatACardInMigModeCanBeCutInto) {
  const auto text = [](const char* mig) {
    return fmt::format(R"({{"v":1,"devices":[{{"uuid":"GPU-a","index":0,"mib":81559,)"
                       R"("healthy":true,"type":"NVIDIA H100 80GB HBM3","mig":{}}}]}})",
                       mig);
  };
  const auto found = ParseTrancheRegister(
      text(R"({"profiles":[{"name":"3g.40gb","mib":40448,"size":4,"starts":[0,4]}],)"
           R"("closed":[{"profile":"1g.10gb+me","start":6,"size":1}]})"));
  ASSERT_TRUE(found.ok()) << found.status();
  const AgentDevice& device = found->agent.devices.at(0);
  EXPECT_EQ(device.mode, "mig");
  EXPECT_EQ(device.type, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(device.mig_profiles,
            (std::vector<AgentMigProfile>{{"3g.40gb", Mebibytes::Of(40448), 0, {{0, 4}, {4, 4}}}}));
  EXPECT_EQ(device.closed, (std::vector<MigDevice>{{"1g.10gb+me", 6, 1}}));
  const struct {
    const char* mig;
    const char* error;
  } table[] = {
      {"[]", "device 0.mig"},
      {R"({"profiles":[{"name":"3g.40gb"}]})",
       "expected a whole number, found none, in device 0.mig.profiles.size"},
      {R"({"profiles":[{"name":"3g.40gb","size":4,"starts":[99]}]})",
       "in device 0.mig.profiles.starts"},
      {R"({"closed":[{"profile":"1g.10gb","size":1}]})",
       "expected a whole number, found none, in device 0.mig.closed.start"},
  };
  for (const auto& row : table) {
    const std::string error = ErrorOf(ParseTrancheRegister(text(row.mig)).status());
    EXPECT_NE(error.find(row.error), std::string::npos) << row.mig << ": " << error;
  }
}

TEST(VolcanoRegister, ReadsDevicesInTheDriversOrder) {
  const auto found = ParseVolcanoRegister(
      "GPU-b,10,32768,NVIDIA-Tesla V100-PCIE-32GB,true,hami-core:"
      "GPU-a,7,32768,NVIDIA-Tesla V100-PCIE-32GB,false,mig:",
      std::nullopt);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->kind, AgentKind::kVolcano);
  EXPECT_EQ(found->memory_unit, Mebibytes::Of(1));
  ASSERT_EQ(found->devices.size(), 2u);
  EXPECT_EQ(found->devices[0].uuid, GpuUuid("GPU-b"));
  EXPECT_EQ(found->devices[0].index, 0);
  EXPECT_EQ(found->devices[0].slots, 10);
  EXPECT_EQ(found->devices[0].memory, Mebibytes::Of(32768));
  EXPECT_EQ(found->devices[0].cores_percent, 100);
  EXPECT_EQ(found->devices[0].type, "NVIDIA-Tesla V100-PCIE-32GB");
  EXPECT_TRUE(found->devices[0].healthy);
  EXPECT_EQ(found->devices[1].index, 1);
  EXPECT_EQ(found->devices[1].mode, "mig");
  EXPECT_FALSE(found->devices[1].healthy);
  const auto old = ParseVolcanoRegister("GPU-a,10,15109,NVIDIA-Tesla T4,true:", std::nullopt);
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old->devices[0].mode, "hami-core") << "older plugins leave it out";
}

// The plugin divides by a factor and does not say which.
TEST(VolcanoRegister, TellsTheFactorByTheSizeOfTheCard) {
  struct Row {
    int64_t registered;
    std::optional<int64_t> label;
    const char* type;
    int64_t unit;
    int64_t mib;
  };
  const Row rows[] = {
      {15109, 15109, "NVIDIA-Tesla T4", 1, 15109},
      {1510, 15109, "NVIDIA-Tesla T4", 10, 15100},
      {59, 15109, "NVIDIA-Tesla T4", 256, 15104},
      {14, 15109, "NVIDIA-Tesla T4", 1024, 14336},
      {30218, 15109, "NVIDIA-Tesla T4", 1, 30218},  // scaled up to twice the memory
      {22, std::nullopt, "NVIDIA-Some New Card", 1024, 22528},
      {24564, std::nullopt, "NVIDIA-Some New Card", 1, 24564},
      {0, 15109, "NVIDIA-Tesla T4", 1, 0},
  };
  for (const Row& row : rows) {
    const auto label = row.label ? std::optional(Mebibytes::Of(*row.label)) : std::nullopt;
    const auto found = ParseVolcanoRegister(
        fmt::format("GPU-a,10,{},{},true,hami-core:", row.registered, row.type), label);
    ASSERT_TRUE(found.ok()) << row.registered;
    EXPECT_EQ(found->memory_unit, Mebibytes::Of(row.unit)) << row.registered;
    EXPECT_EQ(found->devices[0].memory, Mebibytes::Of(row.mib)) << row.registered;
  }
  // Without the label the catalogue knows the card.
  const auto found =
      ParseVolcanoRegister("GPU-a,10,4056,NVIDIA-A100-SXM4-40GB,true,hami-core:", std::nullopt);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->memory_unit, Mebibytes::Of(10));
}

TEST(VolcanoRegister, NamesWhatItCannotRead) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"GPU-a,10,15109:",
       "expected 5 or 6 fields, found \"GPU-a,10,15109\", in the fields of device 0"},
      {"GPU-a,10,15109,T4,true,hami-core",
       "expected \":\" behind every device, found \"GPU-a,10,15109,T4,true,hami-core\", behind "
       "device 0"},
      {"GPU-a,x,15109,T4,true,hami-core:",
       "expected whole number from 0 to 1000000, found \"x\", in count of device 0"},
      {"GPU-a,10,-1,T4,true,hami-core:",
       "expected whole number from 0 to 2147483647, found \"-1\", in memory of device 0"},
      {"GPU-a,10,15109,T4,yes,hami-core:",
       "expected true or false, found \"yes\", in health of device 0"},
      {",10,15109,T4,true,hami-core:", "expected text, found \"\", in uuid of device 0"},
      {"GPU-a,10,15109,T4,true,mps:GPU-a,10,15109,T4,true,mps:",
       "expected distinct uuids, found \"GPU-a\" twice, in the register"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ErrorOf(ParseVolcanoRegister(row.text, std::nullopt).status()), row.error);
  }
}

constexpr const char* kVgpuDevices =
    R"([{"id":1,"type":"NVIDIA A10","uuid":"GPU-b","core":100,"memory":22731,"number":10,"numa":1,)"
    R"("mig":false,"busId":"0000:65:00.0","capability":8.6,"healthy":true},)"
    R"({"id":0,"type":"NVIDIA A10","uuid":"GPU-a","core":200,"memory":45462,"number":5,"numa":-1,)"
    R"("mig":true,"busId":"0000:17:00.0","capability":8.6,"healthy":false}])";

TEST(VgpuManagerRegister, ReadsDevicesAndTheMemoryFactor) {
  const auto found = ParseVgpuManagerRegister(
      kVgpuDevices,
      R"({"deviceSplit":10,"coresScaling":1.0,"memoryFactor":100,"memoryScaling":1.5})");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->kind, AgentKind::kVgpuManager);
  EXPECT_EQ(found->memory_unit, Mebibytes::Of(100));
  ASSERT_EQ(found->devices.size(), 2u);
  const AgentDevice& first = found->devices[0];
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(first.uuid, GpuUuid("GPU-a"));
  EXPECT_EQ(first.cores_percent, 200);
  EXPECT_EQ(first.memory, Mebibytes::Of(45462)) << "the register counts in MiB, scaled already";
  EXPECT_EQ(first.mode, "mig");
  EXPECT_FALSE(first.numa.has_value());
  EXPECT_FALSE(first.healthy);
  const AgentDevice& second = found->devices[1];
  EXPECT_EQ(second.slots, 10);
  EXPECT_EQ(second.type, "NVIDIA A10");
  EXPECT_EQ(second.numa, 1);
  EXPECT_EQ(second.mode, "");
  EXPECT_TRUE(second.healthy);
}

TEST(VgpuManagerRegister, NamesWhatItCannotRead) {
  struct Row {
    const char* devices;
    const char* config;
    const char* error;
  };
  const Row rows[] = {
      {kVgpuDevices, "",
       "expected annotation nvidia.com/node-config-info beside the register, found none"},
      {kVgpuDevices, "[]", "expected object, found array, in nvidia.com/node-config-info"},
      {kVgpuDevices, R"({"memoryFactor":-1})",
       "expected whole number from 0 to 1048576, found number -1, in "
       "nvidia.com/node-config-info.memoryFactor"},
      {"{}", "{}", "expected array, found object, in the register"},
      {R"([{"id":0}])", "{}", "expected a uuid, found none, in device 0.uuid"},
      {R"([{"id":64,"uuid":"a"}])", "{}",
       "expected whole number from 0 to 63, found number 64, in device 0.id"},
      {R"([{"id":0,"uuid":"a"},{"id":0,"uuid":"b"}])", "{}",
       "expected one device of index 0, found \"a\" and \"b\", in the register"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ErrorOf(ParseVgpuManagerRegister(row.devices, row.config).status()), row.error);
  }
}

// Agents that only advertise amounts: cards are equal and go by index.
TEST(AmountRegisters, DivideWhatIsAdvertisedByTheCards) {
  struct Row {
    const char* what;
    AgentKind kind;
    std::vector<AgentAmount> amounts;
    int cards;
    int64_t unit;
    int64_t mib;  // of each card
  };
  const Row rows[] = {
      {"gpushare in GiB",
       AgentKind::kGpushare,
       {Amount("aliyun.com/gpu-count", 4), Amount("aliyun.com/gpu-mem", 88)},
       4,
       1024,
       22528},
      {"gpushare in MiB",
       AgentKind::kGpushare,
       {Amount("aliyun.com/gpu-count", 2), Amount("aliyun.com/gpu-mem", 46068)},
       2,
       1,
       23034},
      {"a card of 1024 units counts in MiB",
       AgentKind::kGpushare,
       {Amount("aliyun.com/gpu-count", 1), Amount("aliyun.com/gpu-mem", 1024)},
       1,
       1,
       1024},
      {"one unit less is GiB",
       AgentKind::kGpushare,
       {Amount("aliyun.com/gpu-count", 1), Amount("aliyun.com/gpu-mem", 1023)},
       1,
       1024,
       1047552},
      {"Volcano's gpushare in MiB",
       AgentKind::kVolcanoOld,
       {Amount("volcano.sh/gpu-memory", 30218), Amount("volcano.sh/gpu-number", 2)},
       2,
       1,
       15109},
      {"Volcano's gpushare by cards alone",
       AgentKind::kVolcanoOld,
       {Amount("volcano.sh/gpu-number", 2)},
       2,
       1,
       0},
      {"tkestack",
       AgentKind::kTkestack,
       {Amount("tencent.com/vcuda-core", 200), Amount("tencent.com/vcuda-memory", 118)},
       2,
       256,
       15104},
      {"elastic-gpu",
       AgentKind::kElastic,
       {Amount("elasticgpu.io/gpu-core", 100), Amount("elasticgpu.io/gpu-memory", 15109)},
       1,
       1,
       15109},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(AgentOfAmounts(row.amounts), row.kind) << row.what;
    const auto found = RegisterOfAmounts(row.kind, row.amounts, {});
    ASSERT_TRUE(found.ok()) << row.what << ErrorOf(found.status());
    EXPECT_EQ(found->agent.kind, row.kind) << row.what;
    EXPECT_EQ(found->agent.memory_unit, Mebibytes::Of(row.unit)) << row.what;
    ASSERT_EQ(static_cast<int>(found->agent.devices.size()), row.cards) << row.what;
    for (int i = 0; i < row.cards; ++i) {
      const AgentDevice& device = found->agent.devices[static_cast<std::size_t>(i)];
      EXPECT_EQ(device.index, i) << row.what;
      EXPECT_TRUE(device.uuid.empty() && device.healthy) << row.what;
      EXPECT_EQ(device.memory, Mebibytes::Of(row.mib)) << row.what;
      EXPECT_EQ(device.cores_percent, 100) << row.what;
      EXPECT_EQ(device.slots, 0) << row.what;
    }
    EXPECT_EQ(found->problem, "") << row.what;
  }
}

TEST(AmountRegisters, LabelsHelpWhereAmountsSayTooLittle) {
  CardHints hints;
  hints.memory = Mebibytes::Of(15109);
  hints.count = 2;
  const auto cards =
      RegisterOfAmounts(AgentKind::kElastic, {Amount("elasticgpu.io/gpu-memory", 30218)}, hints);
  ASSERT_TRUE(cards.ok());
  EXPECT_EQ(cards->agent.devices.size(), 2u);
  const auto memory =
      RegisterOfAmounts(AgentKind::kVolcanoOld, {Amount("volcano.sh/gpu-number", 2)}, hints);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->agent.devices[1].memory, Mebibytes::Of(15109));
  const auto factor = RegisterOfAmounts(
      AgentKind::kVolcanoOld,
      {Amount("volcano.sh/gpu-memory", 3020), Amount("volcano.sh/gpu-number", 2)}, hints);
  ASSERT_TRUE(factor.ok());
  EXPECT_EQ(factor->agent.memory_unit, Mebibytes::Of(10));
}

// gpushare divides by the number of cards, whatever they are. That is said where the label of the
// card's size is not met.
TEST(AmountRegisters, CardsThatAreNotEqualAreSaidWhereTheLabelContradicts) {
  const std::vector<AgentAmount> mixed = {Amount("aliyun.com/gpu-count", 2),
                                          Amount("aliyun.com/gpu-mem", 37)};
  const auto silent = RegisterOfAmounts(AgentKind::kGpushare, mixed, {});
  ASSERT_TRUE(silent.ok());
  EXPECT_EQ(silent->problem, "");
  CardHints hints;
  hints.memory = Mebibytes::Of(23034);
  const auto found = RegisterOfAmounts(AgentKind::kGpushare, mixed, hints);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->agent.devices[0].memory, Mebibytes::Of(18432));
  EXPECT_EQ(found->problem,
            "expected 2 cards of 23034 MiB (label nvidia.com/gpu.memory), found 37 units of 1024 "
            "MiB in all, in aliyun.com/gpu-mem");
  const auto equal = RegisterOfAmounts(
      AgentKind::kGpushare, {Amount("aliyun.com/gpu-count", 2), Amount("aliyun.com/gpu-mem", 44)},
      hints);
  ASSERT_TRUE(equal.ok());
  EXPECT_EQ(equal->problem, "") << "22 GiB is what is left of 23034 MiB";
}

TEST(AmountRegisters, UnhealthyIdsCloseTheirCards) {
  CardHints hints;
  hints.unhealthy = "0, 2";
  const std::vector<AgentAmount> amounts = {Amount("volcano.sh/gpu-memory", 45327),
                                            Amount("volcano.sh/gpu-number", 3)};
  const auto found = RegisterOfAmounts(AgentKind::kVolcanoOld, amounts, hints);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->agent.devices[0].healthy);
  EXPECT_TRUE(found->agent.devices[1].healthy);
  EXPECT_FALSE(found->agent.devices[2].healthy);
  for (const char* list : {"3", "-1", "a", "0,,1"}) {
    hints.unhealthy = list;
    EXPECT_FALSE(RegisterOfAmounts(AgentKind::kVolcanoOld, amounts, hints).ok()) << list;
  }
}

TEST(AmountRegisters, NeedToKnowTheCards) {
  const auto error = [](AgentKind kind, const std::vector<AgentAmount>& amounts) {
    return ErrorOf(RegisterOfAmounts(kind, amounts, {}).status());
  };
  EXPECT_EQ(error(AgentKind::kGpushare, {Amount("aliyun.com/gpu-mem", 44)}),
            "expected 1 to 64 cards, found 0, in aliyun.com/gpu-count");
  EXPECT_EQ(error(AgentKind::kGpushare,
                  {Amount("aliyun.com/gpu-count", 65), Amount("aliyun.com/gpu-mem", 44)}),
            "expected 1 to 64 cards, found 65, in aliyun.com/gpu-count");
  EXPECT_EQ(error(AgentKind::kTkestack, {Amount("tencent.com/vcuda-core", 150)}),
            "expected a multiple of 100, found 150, in tencent.com/vcuda-core");
}

TEST(AmountRegisters, WhatIsNoLongerThereIsNoSign) {
  EXPECT_EQ(AgentOfAmounts({}), AgentKind::kNone);
  EXPECT_EQ(AgentOfAmounts({Amount("aliyun.com/gpu-count", 2), Amount("aliyun.com/gpu-mem", 0)}),
            AgentKind::kNone);
  EXPECT_EQ(AgentOfAmounts({Amount("volcano.sh/vgpu-number", 10)}), AgentKind::kNone)
      << "that plugin registers by an annotation";
  const AgentAmount down{"aliyun.com/gpu-mem", {0, 44}};
  EXPECT_EQ(AgentOfAmounts({down}), AgentKind::kGpushare) << "the plugin is down, the cards stay";
}

absl::StatusOr<KoordinatorDevices> Device(std::string_view spec) {
  Parser parser;
  const absl::StatusOr<Element> document =
      parser.Parse(fmt::format(R"({{"metadata":{{"name":"n1"}},"spec":{}}})", spec));
  if (!document.ok()) return document.status();
  return DecodeKoordinatorDevice(*document);
}

TEST(KoordinatorDevice, ReadsGpusAndLeavesTheRest) {
  const auto found = Device(
      R"({"devices":[{"type":"rdma","id":"0000:1f:00.2","minor":0,"health":true},)"
      R"({"type":"gpu","id":"GPU-b","minor":1,"health":false,"resources":{)"
      R"("koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory":"85198045184",)"
      R"("koordinator.sh/gpu-memory-ratio":"100"},"topology":{"socketID":-1,"nodeID":-1}},)"
      R"({"type":"gpu","id":"GPU-a","minor":0,"health":true,"resources":{)"
      R"("koordinator.sh/gpu-core":100,"koordinator.sh/gpu-memory":"16Gi"},)"
      R"("topology":{"socketID":0,"nodeID":1,"pcieID":"pci0000:16","busID":"0000:17:00.0"}}]})");
  ASSERT_TRUE(found.ok()) << ErrorOf(found.status());
  EXPECT_EQ(found->node, NodeName("n1"));
  ASSERT_TRUE(found->agent.has_value());
  EXPECT_EQ(found->agent->kind, AgentKind::kKoordinator);
  ASSERT_EQ(found->agent->devices.size(), 2u);
  const AgentDevice& first = found->agent->devices[0];
  EXPECT_EQ(first.uuid, GpuUuid("GPU-a"));
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(first.memory, Mebibytes::Of(16384));
  EXPECT_EQ(first.cores_percent, 100);
  EXPECT_EQ(first.slots, 0);
  EXPECT_EQ(first.numa, 1);
  EXPECT_TRUE(first.healthy);
  EXPECT_EQ(found->agent->devices[1].memory, Mebibytes::Of(81251));
  EXPECT_FALSE(found->agent->devices[1].numa.has_value());
  EXPECT_FALSE(found->agent->devices[1].healthy);
}

TEST(KoordinatorDevice, WithoutGpusIsNoAgent) {
  for (const char* spec :
       {R"({})", R"({"devices":[]})", R"({"devices":[{"type":"rdma","minor":0}]})"}) {
    const auto found = Device(spec);
    ASSERT_TRUE(found.ok()) << spec;
    EXPECT_FALSE(found->agent.has_value()) << spec;
  }
}

TEST(KoordinatorDevice, NamesWhatItCannotRead) {
  struct Row {
    const char* spec;
    const char* error;
  };
  const Row rows[] = {
      {"null", "expected object, found nothing, in object.spec"},
      {R"({"devices":{}})", "expected array, found object, in spec.devices"},
      {R"({"devices":[{"type":"gpu","id":"a"}]})",
       "expected a number, found none, in spec.devices 0.minor"},
      {R"({"devices":[{"type":"gpu","minor":64}]})",
       "expected whole number from 0 to 63, found number 64, in spec.devices 0.minor"},
      {R"({"devices":[{"type":"gpu","minor":0,"resources":{"koordinator.sh/gpu-memory":"8X"}}]})",
       "expected whole quantity from 0 to 2251799812636672, found text \"8X\", in spec.devices "
       "0.resources koordinator.sh/gpu-memory"},
      {R"({"devices":[{"type":"gpu","minor":0},{"type":"gpu","minor":0}]})",
       "expected one device of index 0, found \"\" and \"\", in the register"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ErrorOf(Device(row.spec).status()), row.error) << row.spec;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
