// The generated table behind FindAsset; defined in the build folder by embed.cmake.
#pragma once

#include <span>

#include "scheduler/ui/assets.h"

namespace tranche::ui {

std::span<const Asset> AssetTable();

}  // namespace tranche::ui
