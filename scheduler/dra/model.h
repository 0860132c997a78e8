// Objects of resource.k8s.io as plain values: device classes, resource slices, resource claims.
//
// Versions v1, v1beta2 and v1beta1 make the same values. Names without a domain have been given the
// driver's, and lists that the API keeps as maps are ascending by name, so that equal objects are
// equal values. The limits of the API hold for whatever the decoders return.
// Source: dra facts sections 1, 2 and 5; kubernetes/api resource/v1 types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/dra/quantity.h"
#include "scheduler/dra/sharing.h"
#include "scheduler/facts/node_constraints.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche::dra {

inline constexpr std::string_view kGpuDriver = "gpu.nvidia.com";
inline constexpr std::size_t kMostResults = 32;  // devices of one claim, by the API

// "gpu.nvidia.com/profile": the domain is never empty, except in a capacity a claim asks for, which
// then means the domain of whatever driver serves it.
struct QualifiedName {
  std::string domain;
  std::string name;
  friend auto operator<=>(const QualifiedName&, const QualifiedName&) = default;
};

// A semantic version as its driver wrote it.
struct VersionText {
  std::string text;
  friend bool operator==(const VersionText&, const VersionText&) = default;
};
// A list of values (alpha in 1.36) or a type of a later version: it is there, and its value is not
// known.
struct OtherValue {
  friend bool operator==(const OtherValue&, const OtherValue&) = default;
};
using AttributeValue = std::variant<bool, int64_t, std::string, VersionText, OtherValue>;

struct Attribute {
  QualifiedName name;
  AttributeValue value;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// How a request for a part of a capacity is rounded, on devices with several allocations.
struct RequestPolicy {
  std::optional<Quantity> usual;       // what who asks nothing gets; absent: all
  std::vector<Quantity> valid_values;  // ascending; empty: see range
  struct Range {
    std::optional<Quantity> min, max, step;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::optional<Range> range;
  friend bool operator==(const RequestPolicy&, const RequestPolicy&) = default;
};

struct Capacity {
  QualifiedName name;
  Quantity value;
  std::optional<RequestPolicy> policy;
  // The slice wrote the domain of the name. Who asks for an amount must write it the same way.
  bool with_domain = false;
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

struct CapacityAmount {
  QualifiedName name;
  Quantity amount;
  friend bool operator==(const CapacityAmount&, const CapacityAmount&) = default;
};

struct Counter {
  std::string name;
  Quantity value;
  friend bool operator==(const Counter&, const Counter&) = default;
};
// Of a slice: what there is. Of a device: what it takes of that set while it is allocated.
struct CounterSet {
  std::string name;
  std::vector<Counter> counters;  // ascending name
  friend bool operator==(const CounterSet&, const CounterSet&) = default;
};

// Which nodes can use the devices.
struct NodeChoice {
  enum class Kind : uint8_t { kNone, kName, kSelector, kAll, kPerDevice };
  Kind kind = Kind::kNone;
  NodeName name;             // kName
  NodeConstraints selector;  // kSelector
  friend bool operator==(const NodeChoice&, const NodeChoice&) = default;
};

struct Device {
  std::string name;
  std::vector<Attribute> attributes;  // ascending name
  std::vector<Capacity> capacities;   // ascending name
  std::vector<CounterSet> consumes;   // as listed
  std::vector<Taint> taints;          // of the slice
  std::vector<Taint> rule_taints;     // of DeviceTaintRules; the catalog keeps them true
  bool shareable = false;             // allowMultipleAllocations
  bool conditional = false;           // has binding conditions
  NodeChoice node;                    // where the slice says perDeviceNodeSelection
  friend bool operator==(const Device&, const Device&) = default;
};

struct Slice {
  std::string name;
  std::string driver;
  std::string pool;
  int64_t generation = 0;
  int64_t slice_count = 0;  // of the pool, of this generation
  NodeChoice node;
  std::vector<Device> devices;       // as listed: the allocator tries them in this order
  std::vector<CounterSet> counters;  // as listed
  friend bool operator==(const Slice&, const Slice&) = default;
};

// What a class, a claim or an allocation tells a driver.
struct DriverConfig {
  std::vector<std::string> requests;  // "gpu" or "gpu/sub"; empty: all
  std::string driver;
  std::optional<Sharing> sharing;  // nullopt: another driver's, or of a kind we do not know
  friend bool operator==(const DriverConfig&, const DriverConfig&) = default;
};

struct DeviceClass {
  std::string name;
  Instant created;                     // the epoch where the object does not say
  std::vector<std::string> selectors;  // CEL; all must hold
  std::vector<DriverConfig> configs;
  std::string extended_resource;  // "nvidia.com/gpu"; empty: none
  friend bool operator==(const DeviceClass&, const DeviceClass&) = default;
};

// One way to meet a request.
struct RequestChoice {
  std::string name;  // of the subrequest; empty for a request with one way
  std::string device_class;
  std::vector<std::string> selectors;  // CEL; all must hold, and those of the class
  bool all = false;                    // allocationMode All
  int64_t count = 1;                   // ExactCount
  bool admin = false;                  // sees devices without taking them
  std::vector<Toleration> tolerations;
  std::vector<CapacityAmount> capacity;  // ascending name
  friend bool operator==(const RequestChoice&, const RequestChoice&) = default;
};
struct Request {
  std::string name;
  std::vector<RequestChoice> choices;  // the first that can be met; never empty
  friend bool operator==(const Request&, const Request&) = default;
};

// All devices of the named requests agree in an attribute, or all differ in it.
struct Constraint {
  std::vector<std::string> requests;  // "gpu" or "gpu/sub"; empty: all
  QualifiedName attribute;
  bool distinct = false;
  friend bool operator==(const Constraint&, const Constraint&) = default;
};

struct DeviceId {
  std::string driver;
  std::string pool;
  std::string device;
  std::string str() const { return driver + "/" + pool + "/" + device; }
  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
};

struct AllocatedDevice {
  std::string request;  // "gpu" or "gpu/sub"
  DeviceId id;
  bool admin = false;
  bool shared = false;                   // has a share id: others may hold the device too
  std::vector<CapacityAmount> consumed;  // ascending name
  friend bool operator==(const AllocatedDevice&, const AllocatedDevice&) = default;
};
struct Allocation {
  std::vector<AllocatedDevice> devices;
  std::vector<DriverConfig> configs;
  std::optional<NodeConstraints> nodes;  // where the devices can be reached; nullopt: everywhere
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

struct Claim {
  std::string ns;
  std::string name;
  std::string uid;
  std::vector<Request> requests;
  std::vector<Constraint> constraints;
  std::vector<DriverConfig> configs;
  std::optional<Allocation> allocation;
  std::vector<PodUid> reserved_for;    // pods; other consumers are left out
  PodUid owner;                        // the pod it was generated for; empty: none
  bool for_extended_resource = false;  // generated for extended resources of its owner
  std::string str() const { return ns + "/" + name; }
  friend bool operator==(const Claim&, const Claim&) = default;
};

// What a claim will be that is made from a template.
struct ClaimTemplate {
  Claim claim;  // named as the template
  friend bool operator==(const ClaimTemplate&, const ClaimTemplate&) = default;
};

// A DeviceTaintRule: the devices of these names have the taint too.
struct TaintRule {
  std::string name;
  bool selects = false;                             // without a selector it is about no device
  std::optional<std::string> driver, pool, device;  // nullopt: any
  Taint taint;
  friend bool operator==(const TaintRule&, const TaintRule&) = default;
};

// Any of the objects, and the report that one is gone.
using Object = std::variant<DeviceClass, Slice, Claim, ClaimTemplate, TaintRule>;
struct ObjectRef {
  enum class Kind : uint8_t { kClass, kSlice, kClaim, kTemplate, kTaintRule };
  Kind kind = Kind::kClass;
  std::string ns;  // empty: cluster scope
  std::string name;
  friend auto operator<=>(const ObjectRef&, const ObjectRef&) = default;
};
ObjectRef RefOf(const Object& object);

// nullptr when the device has none of that name. Cost: logarithmic.
const Attribute* FindAttribute(const Device& device, std::string_view domain,
                               std::string_view name);
const Capacity* FindCapacity(const Device& device, std::string_view domain, std::string_view name);
// May a request with these tolerations have the device, as its taints go?
bool IsToleratedBy(const Device& device, const std::vector<Toleration>& tolerations);
// The text of an attribute of the GPU driver; empty when absent or of another type.
std::string_view GpuText(const Device& device, std::string_view name);

}  // namespace tranche::dra
