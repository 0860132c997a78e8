// A machine drawn for the terminal: NUMA nodes, GPUs and NICs in them, links between GPUs, and what
// kind of machine it is in a sentence. Plain text, at most 100 columns for 8 GPUs.
#pragma once

#include <string>

#include "topology/machine/machine.h"

namespace tranche {

// `colour`: with terminal escapes.
std::string DrawMachine(const Machine& machine, bool colour);
// "hybrid cube mesh of 8 GPUs", "4 NVLink pairs", "NVSwitch, all to all", "PCIe only": one phrase.
std::string DescribeMachine(const Machine& machine);

}  // namespace tranche
