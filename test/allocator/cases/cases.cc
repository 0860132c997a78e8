// tranche-allocator-cases SEED STATES: random devices and claims, and what Tranche foresees.
//
// One JSON object a line: the objects that the API shows and what is concluded from them, for
// test/allocator's judge to hold against Kubernetes' own allocator.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/dra/allocate.h"
#include "scheduler/dra/catalog.h"
#include "scheduler/dra/cel.h"
#include "scheduler/dra/extended.h"
#include "scheduler/wire/claims/claim_objects.h"
#include "test/allocator/cases/world.h"
#include "test/builders/decoded.h"

namespace tranche::test {
namespace {

constexpr Mix kMixes[] = {
    {"plain"},
    {"partitions", 80},
    {"shares", 0, 60},
    {"generations", 20, 0, 60, 30},
    {"anywhere", 30, 0, 10, 80},
    {"taints", 0, 0, 0, 20, 60},
    {"all", 30, 30, 20, 40, 30},
};

constexpr int kExpressionsAState = 10;

dra::Claim ClaimOf(const std::string& json) { return Decoded<dra::Claim>(json, wire::DecodeClaim); }

// In thousandths, which every amount that is held is a whole number of.
std::string AmountText(dra::Quantity amount) { return fmt::format("{}m", amount.milli()); }

std::string DeviceText(const dra::AllocatedDevice& device) {
  std::vector<std::string> consumed;
  for (const dra::CapacityAmount& amount : device.consumed) {
    consumed.push_back(fmt::format(R"("{}/{}":"{}")", amount.name.domain, amount.name.name,
                                   AmountText(amount.amount)));
  }
  return fmt::format(R"({{"request":"{}","driver":"{}","pool":"{}","device":"{}","admin":{},)"
                     R"("shared":{},"consumed":{{{}}}}})",
                     device.request, device.id.driver, device.id.pool, device.id.device,
                     device.admin, device.shared, fmt::join(consumed, ","));
}

std::string AnswerText(const dra::Prediction& prediction, const std::vector<std::string>& reaches) {
  constexpr std::string_view kKinds[] = {"fits", "no", "error", "unknown"};
  std::vector<std::string> claims;
  for (const std::vector<dra::AllocatedDevice>& devices : prediction.devices) {
    std::vector<std::string> texts;
    for (const dra::AllocatedDevice& device : devices) texts.push_back(DeviceText(device));
    claims.push_back(fmt::format("[{}]", fmt::join(texts, ",")));
  }
  return fmt::format(R"({{"kind":"{}","why":{},"devices":[{}],"reaches":[{}]}})",
                     kKinds[static_cast<std::size_t>(prediction.kind)], Quoted(prediction.why),
                     fmt::join(claims, ","), fmt::join(reaches, ","));
}

// The objects as the server keeps them, asked as its filter does.
class Asked {
 public:
  explicit Asked(const World& world) {
    // Whichever is heard of first.
    const std::size_t before = world.rules.size() / 2;
    for (std::size_t i = 0; i < before; ++i) PutRule(world.rules[i]);
    for (const std::string& json : world.slices) {
      catalog_.PutSlice(Decoded<dra::Slice>(json, wire::DecodeSlice));
    }
    for (std::size_t i = before; i < world.rules.size(); ++i) PutRule(world.rules[i]);
    for (const std::string& json : world.classes) {
      catalog_.classes().PutClass(Decoded<dra::DeviceClass>(json, wire::DecodeDeviceClass));
    }
    for (const std::string& json : world.held) {
      held_.push_back(ClaimOf(json));
      catalog_.PutClaim(held_.back());
    }
    for (const std::string& json : world.claims) claims_.push_back(ClaimOf(json));
  }

  std::string Ask(const DrawnNode& node) {
    const LabelText labels(Labels(node.labels.begin(), node.labels.end()));
    const dra::NodeView view{node.name, &labels};
    std::vector<const dra::Claim*> claims;
    for (const dra::Claim& claim : claims_) claims.push_back(&claim);
    const dra::NodeBooks& books = catalog_.BooksOn(view);
    const dra::Prediction prediction = dra::Predict(books, claims, catalog_.classes());
    std::vector<std::string> reaches;
    for (const dra::Claim& claim : held_) {
      reaches.push_back(dra::Reaches(*claim.allocation, view) ? "true" : "false");
    }
    return AnswerText(prediction, reaches);
  }

  std::string Serving(const std::string& resource) {
    const dra::DeviceClass* serving = dra::ServingClass(resource, catalog_.classes());
    return serving == nullptr ? "" : serving->name;
  }

 private:
  void PutRule(const std::string& json) {
    catalog_.PutTaintRule(Decoded<dra::TaintRule>(json, wire::DecodeTaintRule));
  }

  dra::Catalog catalog_;
  std::vector<dra::Claim> held_, claims_;
};

std::string NodeText(const DrawnNode& node) {
  std::vector<std::string> labels;
  for (const auto& [key, value] : node.labels) {
    labels.push_back(fmt::format(R"("{}":"{}")", key, value));
  }
  return fmt::format(R"({{"metadata":{{"name":"{}","labels":{{{}}}}}}})", node.name,
                     fmt::join(labels, ","));
}

void PrintState(const World& world, std::string_view part) {
  Asked asked(world);
  std::vector<std::string> nodes, answers;
  for (const DrawnNode& node : world.nodes) {
    nodes.push_back(NodeText(node));
    answers.push_back(asked.Ask(node));
  }
  fmt::print(
      R"({{"kind":"state","part":"{}","slices":[{}],"classes":[{}],"held":[{}],"claims":[{}],)"
      R"("rules":[{}],"nodes":[{}],"answers":[{}]}})"
      "\n",
      part, fmt::join(world.slices, ","), fmt::join(world.classes, ","), fmt::join(world.held, ","),
      fmt::join(world.claims, ","), fmt::join(world.rules, ","), fmt::join(nodes, ","),
      fmt::join(answers, ","));
}

void PrintResource(const World& world, Dice& dice) {
  constexpr std::string_view kResources[] = {
      "example.com/gpu", "example.com/other", "example.com/none",
      "deviceclass.resource.kubernetes.io/gpu", "deviceclass.resource.kubernetes.io/none"};
  const std::string resource(dice.Pick(kResources));
  fmt::print(R"({{"kind":"resource","part":"resources","classes":[{}],"resource":"{}",)"
             R"("answer":{{"class":"{}"}}}})"
             "\n",
             fmt::join(world.classes, ","), resource, Asked(world).Serving(resource));
}

void PrintExpression(Dice& dice) {
  const Mix mix{"expressions", 0, 30};
  const std::string_view driver = dice.OneIn(8) ? kDrivers[1] : kDrivers[0];
  const DrawnDevice drawn = DrawDevice(dice, mix, "dev", driver, "");
  const std::string slice =
      fmt::format(R"({{"metadata":{{"name":"s"}},"spec":{{"driver":"{}","pool":{{"name":"p"}},)"
                  R"("devices":[{}]}}}})",
                  driver, drawn.json);
  const dra::Device device = Decoded<dra::Slice>(slice, wire::DecodeSlice).devices[0];
  const std::string text = DrawExpression(dice);
  const dra::Verdict verdict = dra::Expression::Compile(text).Matches(device, driver);
  constexpr std::string_view kMatches[] = {"no", "yes", "error", "unknown"};
  fmt::print(R"({{"kind":"cel","part":"expressions","expression":{},"driver":"{}","device":{},)"
             R"("answer":{{"kind":"{}","why":{}}}}})"
             "\n",
             Quoted(text), driver, drawn.json, kMatches[static_cast<std::size_t>(verdict.match)],
             Quoted(verdict.why));
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: tranche-allocator-cases SEED STATES\n";
    return 2;
  }
  Dice dice(std::strtoull(argv[1], nullptr, 10));
  const long states = std::strtol(argv[2], nullptr, 10);
  for (long done = 0; done < states; ++done) {
    for (const Mix& mix : kMixes) {
      World world;
      DrawSlices(dice, mix, world);
      DrawClasses(dice, world);
      DrawHolders(dice, world);
      DrawClaims(dice, mix, world);
      DrawTaintRules(dice, mix, world);
      PrintState(world, mix.name);
      if (mix.name == "plain") PrintResource(world, dice);
    }
    for (int i = 0; i < kExpressionsAState; ++i) PrintExpression(dice);
  }
  return 0;
}

}  // namespace
}  // namespace tranche::test

int main(int argc, char** argv) { return tranche::test::Main(argc, argv); }
