// The files of the web page, compiled into the binary so that it needs nothing beside it.
//
// The table is generated at build time from scheduler/ui/page (embed.cmake). Immutable; any thread.
#pragma once

#include <string_view>

namespace tranche::ui {

struct Asset {
  std::string_view path;  // as requested: "/ui/", "/ui/style.css"
  std::string_view content_type;
  std::string_view body;
  std::string_view etag;  // strong, quotes included, from the content
};

// The asset served at exactly this path; nullptr when there is none.
const Asset* FindAsset(std::string_view path);

}  // namespace tranche::ui
