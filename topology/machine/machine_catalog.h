// Reference machines whose links follow from their type: boards on which every GPU reaches every
// other alike (NVSwitch, full mesh, no NVLink at all). Machines that exist in several wirings under
// one product name (cube mesh, bridged pairs) are not in it unless the machine label names one.
// Source of each entry beside it; gpu-topology sections 2 and 3.
#pragma once

#include <memory>
#include <string_view>

#include "topology/machine/machine.h"

namespace tranche {

// `product`: base product label ("NVIDIA-H100-80GB-HBM3"); `machine`: label nvidia.com/gpu.machine,
// may be empty. Null: no entry. The same machine for equal questions.
std::shared_ptr<const Machine> CatalogueMachine(std::string_view product, std::string_view machine,
                                                int gpus);

}  // namespace tranche
