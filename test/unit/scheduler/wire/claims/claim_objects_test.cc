// Objects of resource.k8s.io as people write them and as an API server gives them back, among them
// the examples of the well-known talk on DRA for GPUs.
#include "scheduler/wire/claims/claim_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/dra/allocate.h"
#include "scheduler/dra/charge.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {
namespace THIS_FILE {

using dra::Claim;
using dra::DeviceClass;
using dra::PodClaims;
using dra::Slice;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

template <typename Value>
absl::StatusOr<Value> Read(absl::StatusOr<Value> (*decode)(Element), const std::string& json) {
  Parser parser;
  const absl::StatusOr<Element> element = parser.Parse(json);
  if (!element.ok()) return element.status();
  return decode(*element);
}

template <typename Value>
Value Good(absl::StatusOr<Value> (*decode)(Element), const std::string& json) {
  absl::StatusOr<Value> value = Read(decode, json);
  EXPECT_TRUE(value.ok()) << value.status() << "\n" << json;
  return value.ok() ? *std::move(value) : Value();
}

// A node with a whole A100 and one cut into 3g and two 1g.
constexpr std::string_view kSlice = R"({"metadata":{"name":"n1-gpu.nvidia.com-x"},"spec":{
  "driver":"gpu.nvidia.com","nodeName":"n1",
  "pool":{"name":"n1","generation":3,"resourceSliceCount":1},
  "devices":[
  {"name":"gpu-0","attributes":{"type":{"string":"gpu"},"uuid":{"string":"GPU-a"},
    "productName":{"string":"NVIDIA A100-SXM4-40GB"},
    "cudaComputeCapability":{"version":"8.0.0"},
    "resource.kubernetes.io/pcieRoot":{"string":"pci0000:00"},
    "resource.kubernetes.io/numaNode":{"int":0}},
   "capacity":{"memory":{"value":"40Gi"}}},
  {"name":"gpu-1-mig-9-0-4","attributes":{"type":{"string":"mig"},"profile":{"string":"3g.20gb"},
    "parentUUID":{"string":"GPU-b"},"productName":{"string":"NVIDIA A100-SXM4-40GB"}},
   "capacity":{"memory":{"value":"20096Mi"}}},
  {"name":"gpu-1-mig-19-4-1","attributes":{"type":{"string":"mig"},"profile":{"string":"1g.5gb"},
    "parentUUID":{"string":"GPU-b"},"productName":{"string":"NVIDIA A100-SXM4-40GB"}},
   "capacity":{"memory":{"value":"4864Mi"}}},
  {"name":"gpu-1-mig-19-5-1","attributes":{"type":{"string":"mig"},"profile":{"string":"1g.5gb"},
    "parentUUID":{"string":"GPU-b"},"productName":{"string":"NVIDIA A100-SXM4-40GB"}},
   "capacity":{"memory":{"value":"4864Mi"}}}]}})";

constexpr std::string_view kGpuClass = R"({"metadata":{"name":"gpu.nvidia.com",
  "creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"extendedResourceName":"nvidia.com/gpu",
  "selectors":[{"cel":{"expression":
  "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}})";
constexpr std::string_view kMigClass = R"({"metadata":{"name":"mig.nvidia.com"},"spec":{
  "selectors":[{"cel":{"expression":
  "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"}}]}})";

std::string ClaimJson(std::string_view devices, std::string_view rest = "") {
  return std::string(
             R"({"metadata":{"name":"c","namespace":"demo","uid":"u1"},"spec":{"devices":)") +
         std::string(devices) + "}" + std::string(rest) + "}";
}

// "request=device ...", or why not, on the node above.
std::string Picked(const std::vector<std::string>& claims_json) {
  const Slice slice = Good(DecodeSlice, std::string(kSlice));
  std::vector<DeviceClass> classes = {Good(DecodeDeviceClass, std::string(kGpuClass)),
                                      Good(DecodeDeviceClass, std::string(kMigClass))};
  dra::Selectors selectors(classes);
  std::vector<Claim> claims;
  for (const std::string& json : claims_json) claims.push_back(Good(DecodeClaim, json));
  std::vector<const Claim*> views;
  for (const Claim& claim : claims) views.push_back(&claim);
  const Slice* slices[] = {&slice};
  const dra::NodeBooks books = dra::BooksOf(dra::PoolsOf(slices, {"n1"}), dra::Occupancy(views));
  const dra::Prediction prediction = dra::Predict(books, views, selectors);
  if (prediction.kind != dra::Prediction::Kind::kFits) return prediction.why;
  std::string text;
  for (const auto& devices : prediction.devices) {
    for (const dra::AllocatedDevice& device : devices) {
      text += (text.empty() ? "" : " ") + device.request + "=" + device.id.device;
    }
  }
  return text;
}

TEST(DraTalk, TwoMigSlicesByProfileOfOneGpu) {
  EXPECT_EQ(Picked({ClaimJson(R"({"requests":[
        {"name":"mig-3g","exactly":{"deviceClassName":"mig.nvidia.com","selectors":[{"cel":{
          "expression":"device.attributes['gpu.nvidia.com'].profile == '3g.20gb'"}}]}},
        {"name":"mig-1g","exactly":{"deviceClassName":"mig.nvidia.com","selectors":[{"cel":{
          "expression":"device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"}}]}}],
        "constraints":[{"requests":["mig-3g","mig-1g"],
          "matchAttribute":"gpu.nvidia.com/parentUUID"}]})")}),
            "mig-3g=gpu-1-mig-9-0-4 mig-1g=gpu-1-mig-19-4-1");
}

TEST(DraTalk, AtLeastTenGiByCapacityAndWholeElse3g) {
  EXPECT_EQ(Picked({ClaimJson(R"({"requests":[{"name":"mig","exactly":{
              "deviceClassName":"mig.nvidia.com","selectors":[{"cel":{"expression":
              "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('10Gi')) >= 0"
              }}]}}]})")}),
            "mig=gpu-1-mig-9-0-4");
  const std::string either = ClaimJson(R"j({"requests":[{"name":"gpu","firstAvailable":[
      {"name":"whole","deviceClassName":"gpu.nvidia.com"},
      {"name":"slice","deviceClassName":"mig.nvidia.com","selectors":[{"cel":{"expression":
        "device.attributes['gpu.nvidia.com'].profile.startsWith('3g.')"
}
}]
}]
}]
})j");
  EXPECT_EQ(Picked({either}), "gpu/whole=gpu-0");
  EXPECT_EQ(Picked({either, either}), "gpu/whole=gpu-0 gpu/slice=gpu-1-mig-9-0-4");
}

TEST(DraTalk, ASharedClaimOfTwoPodsIsOneCharge) {
  const Claim claim = Good(
      DecodeClaim, ClaimJson(
                       R"({"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.nvidia.com",
          "allocationMode":"ExactCount","count":1}}],
        "config":[{"requests":["gpu"],"opaque":{"driver":"gpu.nvidia.com","parameters":{
          "apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig","sharing":{
          "strategy":"TimeSlicing","timeSlicingConfig":{"interval":"Long"}}}}}]})",
                       R"(,"status":{"allocation":{"devices":{"results":[{"request":"gpu",
          "driver":"gpu.nvidia.com","pool":"n1","device":"gpu-0"}]},
          "nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",
            "operator":"In","values":["n1"]}]}]}},
        "reservedFor":[{"resource":"pods","name":"a","uid":"pa"},
                       {"resource":"pods","name":"b","uid":"pb"},
                       {"resource":"podgroups","name":"g","uid":"pg"}]})"));
  EXPECT_THAT(claim.reserved_for, ElementsAre(PodUid("pa"), PodUid("pb")));
  ASSERT_TRUE(claim.allocation);
  EXPECT_TRUE(dra::Reaches(*claim.allocation, {"n1"}));
  EXPECT_FALSE(dra::Reaches(*claim.allocation, {"n2"}));
  ASSERT_TRUE(claim.configs[0].sharing);
  EXPECT_EQ(dra::Describe(*claim.configs[0].sharing),
            "time-slicing: the containers of the claim take turns on a GPU, with Long time slices");
  const Slice slice = Good(DecodeSlice, std::string(kSlice));
  const Slice* slices[] = {&slice};
  EXPECT_THAT(dra::ChargeOfAllocation(claim, dra::DeviceTable(slices)),
              ElementsAre(ModelCharge{"a100-40gb", {kQuantaPerGpu, kQuantaPerGpu}}));
}

TEST(DraTalk, MpsWithLimits) {
  const Claim claim =
      Good(DecodeClaim,
           ClaimJson(
               R"({"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.nvidia.com"}}],
        "config":[{"opaque":{"driver":"gpu.nvidia.com","parameters":{
          "apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig","sharing":{
          "strategy":"MPS","mpsConfig":{"defaultActiveThreadPercentage":50,
          "defaultPinnedDeviceMemoryLimit":"10Gi",
          "defaultPerDevicePinnedMemoryLimit":{"0":"5Gi"}}}}}}]})"));
  ASSERT_TRUE(claim.configs[0].sharing);
  EXPECT_EQ(dra::Describe(*claim.configs[0].sharing),
            "MPS: each process gets at most 50% of the threads and 10240 MiB of a GPU; on device 0 "
            "5120 MiB");
}

TEST(DraObjects, ConfigurationsWeDoNotKnowAreLeftAlone) {
  for (
      const std::string parameters :
      {R"({"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig"})",
       R"({"apiVersion":"gpu.example.com/v1","kind":"GpuConfig"})",
       R"({"apiVersion":"resource.nvidia.com/v1","kind":"GpuConfig","sharing":{"strategy":"New"}})",
       R"({"apiVersion":"resource.nvidia.com/v1","kind":"GpuConfig","sharing":{"strategy":"MPS",
            "mpsConfig":{"defaultActiveThreadPercentage":500}}})"}) {
    const Claim claim = Good(
        DecodeClaim, ClaimJson(R"({"config":[{"opaque":{"driver":"gpu.nvidia.com","parameters":)" +
                               parameters + "}}]}"));
    ASSERT_THAT(claim.configs, SizeIs(1)) << parameters;
    EXPECT_FALSE(claim.configs[0].sharing) << parameters;
  }
}

TEST(DraObjects, ThreeVersionsMakeTheSameValues) {
  const Claim v1 = Good(DecodeClaim, ClaimJson(R"({"requests":[{"name":"gpu","exactly":{
      "deviceClassName":"gpu.nvidia.com","allocationMode":"ExactCount","count":2,
      "tolerations":[{"key":"k","operator":"Exists"}],
      "capacity":{"requests":{"memory":"4Gi","other.com/x":"1"}}}}]})"));
  const Claim v1beta1 = Good(DecodeClaim, ClaimJson(R"({"requests":[{"name":"gpu",
      "deviceClassName":"gpu.nvidia.com","allocationMode":"ExactCount","count":2,
      "tolerations":[{"key":"k","operator":"Exists"}],
      "capacity":{"requests":{"other.com/x":1,"memory":"4096Mi"}}}]})"));
  EXPECT_EQ(v1, v1beta1);
  ASSERT_THAT(v1.requests, SizeIs(1));
  const dra::RequestChoice& choice = v1.requests[0].choices[0];
  EXPECT_EQ(choice.count, 2);
  EXPECT_THAT(choice.tolerations, SizeIs(1));
  EXPECT_EQ(choice.capacity[0].name, (dra::QualifiedName{"", "memory"}));
  EXPECT_EQ(choice.capacity[1].name, (dra::QualifiedName{"other.com", "x"}));

  const std::string start = R"({"metadata":{"name":"s"},"spec":{"driver":"gpu.nvidia.com",
      "allNodes":true,"pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[)";
  const std::string body = R"("attributes":{"a":{"bool":true}},"capacity":{"m":{"value":"1Gi"}})";
  EXPECT_EQ(Good(DecodeSlice, start + R"({"name":"d",)" + body + "}]}}"),
            Good(DecodeSlice, start + R"({"name":"d","basic":{)" + body + "}}]}}"));
}

TEST(DraObjects, ASliceWithEverything) {
  const Slice slice = Good(DecodeSlice, R"({"metadata":{"name":"s"},"spec":{
    "driver":"gpu.nvidia.com","perDeviceNodeSelection":true,
    "pool":{"name":"p","generation":7,"resourceSliceCount":2},
    "sharedCounters":[{"name":"gpu-0-counter-set","counters":{
      "memory-slice-0":{"value":"1"},"copy-engines":{"value":"7"}}}],
    "devices":[{"name":"d","nodeName":"n1","allowMultipleAllocations":true,
      "bindingConditions":["ready"],
      "consumesCounters":[{"counterSet":"gpu-0-counter-set","counters":{
        "memory-slice-0":{"value":"1"}}}],
      "taints":[{"key":"k","value":"v","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}],
      "attributes":{"uuid":{"string":"short"},"gpu.nvidia.com/uuid":{"string":"qualified"},
        "n":{"int":-3},"v":{"version":"1.2.3"},"l":{"strings":["a","b"]}},
      "capacity":{"memory":{"value":"8Gi","requestPolicy":{"default":"1Gi",
        "validRange":{"min":"1Mi","step":"1Mi","max":"8Gi"}}},
        "shares":{"value":"4","requestPolicy":{"default":"1","validValues":["1","2"]}}}},
      {"name":"e","nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[
        {"key":"rack","operator":"In","values":["7"]}]}]}}]}})");
  EXPECT_EQ(slice.node.kind, dra::NodeChoice::Kind::kPerDevice);
  EXPECT_EQ(slice.generation, 7);
  EXPECT_EQ(slice.counters[0].counters[0].name, "copy-engines");
  const dra::Device& device = slice.devices[0];
  EXPECT_TRUE(device.shareable);
  EXPECT_TRUE(device.conditional);
  EXPECT_EQ(device.node.name, NodeName("n1"));
  EXPECT_EQ(device.consumes[0].name, "gpu-0-counter-set");
  EXPECT_THAT(device.taints, ElementsAre(Taint{"k", "v", "NoExecute"}));
  EXPECT_EQ(dra::GpuText(device, "uuid"), "qualified") << "the longer name counts";
  EXPECT_EQ(std::get<int64_t>(dra::FindAttribute(device, "gpu.nvidia.com", "n")->value), -3);
  EXPECT_TRUE(std::holds_alternative<dra::OtherValue>(
      dra::FindAttribute(device, "gpu.nvidia.com", "l")->value));
  const dra::Capacity* memory = dra::FindCapacity(device, "gpu.nvidia.com", "memory");
  ASSERT_TRUE(memory != nullptr && memory->policy && memory->policy->range);
  EXPECT_EQ(memory->policy->range->step, dra::ParseQuantity("1Mi"));
  EXPECT_THAT(dra::FindCapacity(device, "gpu.nvidia.com", "shares")->policy->valid_values,
              SizeIs(2));
  EXPECT_EQ(slice.devices[1].node.kind, dra::NodeChoice::Kind::kSelector);
}

TEST(DraObjects, ATaintRule) {
  const dra::TaintRule rule = Good(DecodeTaintRule, R"({"metadata":{"name":"r"},"spec":{
    "deviceSelector":{"driver":"gpu.nvidia.com","pool":null,"device":"gpu-3"},
    "taint":{"key":"k","value":"v","effect":"NoExecute"}}})");
  EXPECT_EQ(rule, (dra::TaintRule{
                      "r", true, "gpu.nvidia.com", {}, "gpu-3", Taint{"k", "v", "NoExecute"}}));
  const auto with = [](std::string_view spec) {
    return std::string(R"({"metadata":{"name":"r"},"spec":{)") + std::string(spec) + "}}";
  };
  EXPECT_FALSE(Good(DecodeTaintRule, with(R"("taint":{"key":"k","effect":"None"})")).selects);
  EXPECT_TRUE(
      Good(DecodeTaintRule, with(R"("deviceSelector":{},"taint":{"key":"k","effect":"None"})"))
          .selects);
  // Of Kubernetes 1.33 and 1.34.
  const auto wrong = [&with](std::string_view spec) {
    return std::string(Read(DecodeTaintRule, with(spec)).status().message());
  };
  EXPECT_THAT(wrong(R"("deviceSelector":{"deviceClassName":"c"},"taint":{})"),
              HasSubstr("expected a selector by driver, pool and device, found deviceClassName"));
  EXPECT_THAT(wrong(R"("deviceSelector":{})"),
              HasSubstr("expected object, found nothing, in spec.taint"));
}

TEST(DraObjects, AllocationWithSharesAndAdminAccess) {
  const Claim claim = Good(DecodeClaim, ClaimJson("{}", R"(,"status":{"allocation":{"devices":{
      "results":[{"request":"a/b","driver":"gpu.nvidia.com","pool":"n1","device":"gpu-0",
        "shareID":"5d8f","consumedCapacity":{"memory":"4Gi"}},
       {"request":"m","driver":"gpu.nvidia.com","pool":"n1","device":"gpu-0",
        "adminAccess":true}]}}})"));
  ASSERT_TRUE(claim.allocation);
  ASSERT_THAT(claim.allocation->devices, SizeIs(2));
  EXPECT_TRUE(claim.allocation->devices[0].shared);
  EXPECT_EQ(claim.allocation->devices[0].consumed[0].name,
            (dra::QualifiedName{"gpu.nvidia.com", "memory"}));
  EXPECT_TRUE(claim.allocation->devices[1].admin);
  EXPECT_FALSE(claim.allocation->nodes);
}

TEST(DraObjects, ClaimsForExtendedResourcesAreRecognised) {
  const auto with = [](std::string_view value) {
    return Good(DecodeClaim,
                R"({"metadata":{"name":"c","namespace":"d","annotations":{
                    "resource.kubernetes.io/extended-resource-claim":")" +
                    std::string(value) +
                    R"("},"ownerReferences":[{"kind":"Pod","name":"p","uid":"pu"}]},"spec":{}})");
  };
  EXPECT_TRUE(with("true").for_extended_resource);
  EXPECT_EQ(with("true").owner, PodUid("pu"));
  EXPECT_FALSE(with("false").for_extended_resource);
}

TEST(DraObjects, ATemplateIsTheClaimItMakes) {
  const Claim claim = Good(DecodeClaimTemplate, R"({"metadata":{"name":"t","namespace":"demo"},
    "spec":{"metadata":{},"spec":{"devices":{"requests":[{"name":"gpu","exactly":{
      "deviceClassName":"gpu.nvidia.com"}}]}}}})");
  EXPECT_EQ(claim.str(), "demo/t");
  EXPECT_THAT(claim.requests, SizeIs(1));
}

TEST(DraObjects, ClaimsOfAPod) {
  const PodClaims pod = Good(DecodePodClaims, R"({"metadata":{"name":"p"},"spec":{
    "resourceClaims":[{"name":"shared","resourceClaimName":"one"},
      {"name":"own","resourceClaimTemplateName":"t"},
      {"name":"none","resourceClaimTemplateName":"u"}],
    "containers":[{"name":"main","resources":{"claims":[{"name":"own","request":"gpu"},
      {"name":"shared"}]}}]},
    "status":{"resourceClaimStatuses":[{"name":"own","resourceClaimName":"p-own-x7"},
      {"name":"shared","resourceClaimName":"forged"},{"name":"none"}],
    "extendedResourceClaimStatus":{"resourceClaimName":"p-ext","requestMappings":[
      {"containerName":"main","resourceName":"nvidia.com/gpu",
       "requestName":"container-0-request-0"}]}}})");
  EXPECT_THAT(pod.claims,
              ElementsAre(dra::PodClaim{"shared", "one", ""}, dra::PodClaim{"own", "p-own-x7", "t"},
                          dra::PodClaim{"none", "", "u"}));
  EXPECT_THAT(pod.containers, ElementsAre(dra::ContainerClaim{"main", "own", "gpu"},
                                          dra::ContainerClaim{"main", "shared", ""}));
  ASSERT_TRUE(pod.extended);
  EXPECT_EQ(pod.extended->claim, "p-ext");
  EXPECT_THAT(pod.extended->mappings, SizeIs(1));
  EXPECT_THAT(Good(DecodePodClaims, R"({"metadata":{"name":"p"},"spec":{}})").claims, IsEmpty());
}

std::string Many(std::string_view entry, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::string(entry);
  return text + "]";
}

TEST(DraObjects, APodIsReadHoweverManyContainersItHas) {
  const std::string claiming = R"({"name":"c","resources":{"claims":[{"name":"gpu"}]}})";
  const std::string entry = R"({"name":"gpu","resourceClaimName":"made"})";
  const PodClaims pod =
      Good(DecodePodClaims, R"({"metadata":{"name":"p"},"spec":{"resourceClaims":[{"name":"gpu",)"
                            R"("resourceClaimTemplateName":"t"}],"initContainers":)" +
                                Many(R"({"name":"i"})", 5'000) + R"(,"containers":)" +
                                Many(claiming, 2'000) + R"(},"status":{"resourceClaimStatuses":)" +
                                Many(entry, 300) + "}}");
  EXPECT_EQ(pod.containers.size(), 2'000u);
  EXPECT_EQ(pod.claims[0].claim, "made");
}

TEST(DraObjects, LimitsAndTypesAreNamed) {
  const std::string request = R"({"name":"r","exactly":{"deviceClassName":"c"}})";
  for (const auto& [json, why] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "expected object"},
           {R"({"spec":{}})", "metadata.name"},
           {ClaimJson(R"({"requests":)" + Many(request, 33) + "}"), "at most 32 entries"},
           {ClaimJson(R"({"requests":[{"name":"r","exactly":{}}]})"), "a device class"},
           {ClaimJson(R"({"requests":[{"name":"r","exactly":{"deviceClassName":"c",
              "allocationMode":"Some"}}]})"),
            "found \"Some\""},
           {ClaimJson(R"({"requests":[{"name":"r","exactly":{"deviceClassName":"c","count":0}}]})"),
            "count"},
           {ClaimJson(R"({"requests":[{"name":"r","firstAvailable":)" +
                      Many(R"({"name":"s","deviceClassName":"c"})", 9) + "}]}"),
            "at most 8"},
           {ClaimJson(R"({"constraints":[{"matchAttribute":"parentUUID"}]})"), "with its domain"},
           {ClaimJson(R"({"requests":[{"name":"r","exactly":{"deviceClassName":"c",
              "capacity":{"requests":{"memory":"much"}}}}]})"),
            "expected a quantity, found text \"much\""},
           {ClaimJson(R"({"requests":[{"name":"r","exactly":{"deviceClassName":"c","selectors":[
              {"cel":{"expression":")" +
                      std::string(10241, 'a') + R"("}}]}}]})"),
            "bytes of CEL"},
           {ClaimJson("{}", R"(,"status":{"reservedFor":)" + Many("{}", 257) + "}"), "at most 256"},
       }) {
    const auto claim = Read(DecodeClaim, json);
    ASSERT_FALSE(claim.ok()) << json;
    EXPECT_THAT(std::string(claim.status().message()), HasSubstr(why)) << json;
  }
  const auto slice = [](const std::string& spec) {
    return R"({"metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n",
      "pool":{"name":"p","generation":1,"resourceSliceCount":1},)" +
           spec + "}}";
  };
  for (const auto& [json, why] : std::vector<std::pair<std::string, std::string>>{
           {R"({"metadata":{"name":"s"},"spec":{}})", "spec.pool"},
           {R"({"metadata":{"name":"s"}})", "object.spec"},
           {slice(R"("devices":)" + Many(R"({"name":"d"})", 129)), "at most 128"},
           {slice(R"("sharedCounters":)" + Many(R"({"name":"d"})", 9)), "at most 8"},
           {slice(R"("devices":[{"name":"d","attributes":{"a":{"int":"1"}}}])"), "text \"1\""},
           {slice(R"("devices":[{"name":"d","attributes":{"a":{"string":")" + std::string(65, 'a') +
                  R"("}}}])"),
            "at most 64 bytes"},
           {slice(R"("devices":[{"name":"d","capacity":{"memory":{"value":"9Ei"}}}])"),
            "expected a quantity"},
       }) {
    const auto read = Read(DecodeSlice, json);
    ASSERT_FALSE(read.ok()) << json;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(why)) << json;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
