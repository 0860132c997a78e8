// A random cluster with devices, who holds them, and claims of a pod that comes: as the JSON
// objects of resource.k8s.io/v1.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "test/allocator/cases/dice.h"

namespace tranche::test {

// How often what is out of the ordinary comes up, in percent.
struct Mix {
  std::string_view name;
  int partitions = 0;   // devices that take from shared counters, as dynamic MIG has
  int shares = 0;       // devices that several claims hold parts of
  int generations = 0;  // pools that are old, incomplete or wrong
  int anywhere = 0;     // devices of several nodes
  int taints = 0;       // and binding conditions
};

struct DrawnCapacity {
  std::string name;
  int whole = 0;
  std::string unit;  // "Gi" or none
};

struct DrawnDevice {
  std::string name;
  std::string json;
  bool shareable = false;
  std::vector<DrawnCapacity> capacities;
};

struct DrawnSlice {
  std::string driver;
  std::string pool;
  std::vector<DrawnDevice> devices;
};

struct DrawnNode {
  std::string name;
  std::map<std::string, std::string> labels;
};

// Lists of objects, each a JSON text.
struct World {
  std::vector<DrawnNode> nodes;
  std::vector<DrawnSlice> drawn;
  std::vector<std::string> slices;
  std::vector<std::string> classes;
  std::vector<std::string> held;    // claims that hold devices
  std::vector<std::string> claims;  // of the pod
  std::vector<std::string> rules;   // DeviceTaintRules
};

inline constexpr std::string_view kDrivers[] = {"gpu.nvidia.com", "fpga.example.com"};
// Capacity and attribute names come both with the driver's domain and without.
DrawnDevice DrawDevice(Dice& dice, const Mix& mix, std::string name, std::string_view driver,
                       const std::string& more);
void DrawSlices(Dice& dice, const Mix& mix, World& world);
void DrawClasses(Dice& dice, World& world);
// By the names of world.drawn, and some that nothing has.
void DrawTaintRules(Dice& dice, const Mix& mix, World& world);
void DrawClaims(Dice& dice, const Mix& mix, World& world);
// Claims that hold some devices of world.drawn.
void DrawHolders(Dice& dice, World& world);
std::string SelectorTerm(const DrawnNode& node, Dice& dice);

// A selector's text, of the kinds people write.
std::string DrawSelector(Dice& dice);
// Any expression whose value is true or false.
std::string DrawExpression(Dice& dice);

}  // namespace tranche::test
