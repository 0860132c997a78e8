#include "bench/storm/scenes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tranche::bench {
namespace {

constexpr int kTeams = 40;
constexpr int kAStep = 50;  // pods that come at once

int Scaled(double scale, int size) { return std::max(1, static_cast<int>(scale * size)); }

void Usual(World& world) {
  world.Declare(kTeams, kTeams);
  // Half of every other node is in use.
  for (int node = 0; node < world.profile().nodes; node += 2) {
    world.See(world.Running(
        StormPod(fmt::format("usual-{}", node), node % kTeams, world.profile().gpus_per_node / 2),
        node));
  }
}

PodFacts Waiting(PodRequest request) {
  PodFacts pod;
  pod.request = std::move(request);
  pod.unschedulable = true;
  return pod;
}

// `size` pods come in steps, made by `make`.
StormScene Coming(std::string name, int size, std::function<PodFacts(int)> make) {
  StormScene scene{std::move(name), size, Usual, nullptr};
  scene.play = [size, make = std::move(make)](World& world, int step) {
    for (int i = step * kAStep; i < std::min(size, (step + 1) * kAStep); ++i) world.See(make(i));
    return (step + 1) * kAStep < size;
  };
  return scene;
}

StormScene Namespaces(int quotas, int namespaces) {
  StormScene scene{"namespaces", namespaces, nullptr, nullptr};
  scene.prepare = [quotas, namespaces](World& world) { world.Declare(quotas, namespaces); };
  scene.play = [](World& world, int) {
    world.AddNamespace();
    return true;
  };
  return scene;
}

StormScene Drain(int pods) {
  StormScene scene{"drain", pods, nullptr, nullptr};
  scene.prepare = [pods](World& world) {
    GpuBudget budget;
    budget.name = budget.uid = "drained";
    budget.quota_ref = "team-000";
    budget.milli_gpu_hours = 1;
    budget.on_exhaustion = OnExhaustion::kDrain;
    world.Declare(kTeams, kTeams, {budget});
    for (int i = 0; i < pods; ++i) {
      world.See(world.Running(StormPod(fmt::format("drained-{}", i), 0, 1), i / 8));
    }
  };
  scene.play = [left = pods](World& world, int) mutable {
    world.Pass(std::chrono::seconds(1));
    world.host().Tick();
    left -= world.Evict();
    return left > 0;
  };
  return scene;
}

StormScene Budgets(int pods) {
  StormScene scene{"budgets", pods, nullptr, nullptr};
  const auto life = [](World& world, int i) {
    const PodRequest request = StormPod(fmt::format("ended-{}", i), i % kTeams, 1);
    world.See(world.Running(request, i));
    world.Pass(std::chrono::seconds(20));
    PodFacts ended = world.Running(request, i);
    ended.phase = PodPhase::kSucceeded;
    world.See(std::move(ended));
    world.Gone(request.uid);
  };
  scene.prepare = [pods, life](World& world) {
    std::vector<GpuBudget> budgets;
    for (int i = 0; i < 5; ++i) {
      GpuBudget& budget = budgets.emplace_back();
      budget.name = budget.uid = fmt::format("rolling-{}", i);
      budget.quota_ref = "org";
      budget.milli_gpu_hours = 1'000'000'000;
      budget.notify_at_percent = {80};
      budget.window.type = BudgetWindow::Type::kRolling;
      budget.window.duration = std::chrono::hours(720);
    }
    world.Declare(kTeams, kTeams, budgets);
    for (int i = 0; i < pods; ++i) life(world, i);
  };
  scene.play = [pods, life](World& world, int step) {
    life(world, pods + step);
    return true;
  };
  return scene;
}

StormScene WhatIfs(int pods) {
  StormScene scene{"what-ifs", pods, Usual, nullptr};
  scene.play = [pods](World& world, int step) {
    PodRequest request = StormPod(fmt::format("perhaps-{}", step), step % kTeams, 1 + step % 8);
    request.cpu = MilliCpu::Of(step);
    world.host().With(EngineCaller::kWhatIf, [&request](Engine& engine, Instant now) {
      engine.WhatIf({&request, 1}, now);
    });
    return step + 1 < pods;
  };
  return scene;
}

// Clients that ask for views of the whole cluster and read no answer. One that waited in vain goes
// and another one comes, five in a second.
StormScene Deaf(int clients) {
  constexpr int kStepsBetween = 100;
  StormScene scene{"deaf clients", clients, Usual, nullptr};
  scene.play = [clients](World& world, int step) {
    if (step >= clients && step % kStepsBetween != 0) return true;
    const absl::Status came = world.ComeDeaf(static_cast<std::size_t>(clients));
    if (!came.ok()) std::fprintf(stderr, "%s\n", std::string(came.message()).c_str());
    return came.ok();
  };
  return scene;
}

// A pod of many containers with more GPUs each than a node has, on a node whose state changes.
StormScene Containers(int containers) {
  StormScene scene{"containers", containers, Usual, nullptr};
  scene.play = [containers](World& world, int step) {
    PodRequest request = StormPod(fmt::format("many-{}", step), 0, 64);
    const Ask ask = request.asks.front();
    for (int i = 1; i < containers; ++i) {
      request.containers.push_back({fmt::format("c{}", i), ContainerRole::kApp, 64});
      request.asks.push_back(ask);
      request.asks.back().container = i;
    }
    request.pool_needs.front().count = int64_t{64} * containers;
    world.See(world.Running(request, step));
    const PodRequest other = StormPod(fmt::format("beside-{}", step), 1, 1);
    world.See(world.Running(other, step));
    world.Gone(other.uid);
    world.Gone(request.uid);
    return true;
  };
  return scene;
}

}  // namespace

std::vector<StormScene> StormScenes(double scale) {
  std::vector<StormScene> scenes;
  scenes.push_back({"quiet", 0, Usual, [](World&, int) { return false; }});
  scenes.push_back(Coming("pending", Scaled(scale, 10'000), [](int i) {
    return Waiting(StormPod(fmt::format("pending-{}", i), i % kTeams, 1 + i % 8));
  }));
  scenes.push_back(Coming("absent model", Scaled(scale, 1'000), [](int i) {
    PodRequest request = StormPod(fmt::format("absent-{}", i), i % kTeams, 1);
    request.models_any = {"b200"};
    return Waiting(std::move(request));
  }));
  scenes.push_back(Namespaces(Scaled(scale, 500), Scaled(scale, 3'000)));
  const int members = Scaled(scale, 10'000);
  scenes.push_back(Coming("gang", members, [members](int i) {
    PodRequest request = StormPod(fmt::format("member-{}", i), 0, 8);
    request.gang = "huge";
    request.gang_size = members;
    request.gang_rank = i;
    return Waiting(std::move(request));
  }));
  scenes.push_back(Drain(Scaled(scale, 1'600)));
  scenes.push_back(Budgets(Scaled(scale, 100'000)));
  scenes.push_back(WhatIfs(Scaled(scale, 1'000)));
  scenes.push_back(Containers(Scaled(scale, 400)));
  scenes.push_back(Deaf(Scaled(scale, 60)));
  return scenes;
}

}  // namespace tranche::bench
