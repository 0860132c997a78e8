// The text of `nvidia-smi topo -m`, and what is made of a machine it describes.
#include "test/fuzz/input.h"
#include "topology/machine/machine_draw.h"
#include "topology/machine/machine_parse.h"
#include "topology/machine/machine_sources.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  const std::string text = fuzz::Padded(data, size);
  const auto parsed = ParseMachine(text);
  if (!parsed.ok()) {
    TRANCHE_CHECK(!parsed.status().message().empty());
    return 0;
  }
  const Machine& machine = parsed->machine;
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = 0; right < left; ++right) {
      TRANCHE_CHECK(machine.link(left, right) == machine.link(right, left));
    }
  }
  // What is drawn or said of odd text does not steer a terminal.
  std::string shown = DrawMachine(machine, false);
  for (const std::string& problem : parsed->problems) shown += problem;
  for (const char c : shown) TRANCHE_CHECK(c == '\n' || (c >= ' ' && c <= '~'));
  // A node with just these GPUs has just this machine.
  MachineSources sources;
  for (int gpu = 0; gpu < machine.size(); ++gpu) sources.gpus.push_back({gpu, GpuUuid(), {}});
  sources.matrix = &machine;
  const ResolvedMachine resolved = ResolveMachine(sources);
  TRANCHE_CHECK(resolved.verified && resolved.machine->digest() == machine.digest());
  return 0;
}
