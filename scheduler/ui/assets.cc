#include "scheduler/ui/assets.h"

#include <algorithm>

#include "scheduler/ui/asset_table.h"

namespace tranche::ui {

const Asset* FindAsset(std::string_view path) {
  const auto assets = AssetTable();
  const auto found = std::find_if(assets.begin(), assets.end(),
                                  [path](const Asset& asset) { return asset.path == path; });
  return found == assets.end() ? nullptr : &*found;
}

}  // namespace tranche::ui
