// GPU models: from a node's product label to a family name and memory size.
#pragma once

#include <string>
#include <string_view>

#include "topology/base/units.h"

namespace tranche {

// A short, stable model name for people, selectors, metrics and quota lines: "h100", "a100-40gb",
// "l40s", "v100-32gb", "t4". Built from the product label ("NVIDIA-H100-80GB-HBM3",
// "Tesla-V100-SXM2-16GB", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "...-SHARED") and the memory; of a
// vGPU type ("GRID-A100-10C") that of its card. An unknown product is its lower-cased label without
// vendor prefix and suffixes; "unknown" if empty.
std::string GpuModelName(std::string_view product);

// The product label without "-SHARED" and "-MIG-<profile|INVALID>".
std::string_view BaseProduct(std::string_view product);

// Memory of a model by its product label where the node publishes none; zero when unknown.
// Source: node-inventory and vendor data sheets (cited in gpu_model.cc).
Mebibytes CatalogueMemory(std::string_view product);

// Does the catalogue have a model that `pattern` names (see MatchesModel)? A whole product label
// names its model.
bool IsCatalogueModel(std::string_view pattern);

// Does `pattern` (one entry of tranche.dev/model, any case) name this product? True when the
// product label or the model name contains it from the start of a word on; a pattern that ends in a
// digit must also end its word: "L4" names no L40S. "*TEXT*" names every product whose label has
// that text anywhere, as HAMi reads nvidia.com/use-gputype: there "L4" does.
bool MatchesModel(std::string_view pattern, std::string_view product);

}  // namespace tranche
