// The body of a list, cut into pieces: items and rest must not depend on where it was cut, and an
// item that can be read says the same as its outline.
#include <utility>
#include <vector>

#include "scheduler/kube/watch/json_cut.h"
#include "test/fuzz/input.h"

namespace {

using namespace tranche;

std::optional<std::string_view> NameOf(wire::Element object) {
  wire::Object root;
  if (object.get(root) != simdjson::SUCCESS) return std::nullopt;
  const auto metadata = wire::FindObject(root, "metadata");
  return metadata ? wire::FindText(*metadata, "name") : std::nullopt;
}

void CheckItem(const std::string& item) {
  static kube::ObjectReader reader;
  static wire::LenientParser outlines;
  static wire::Parser strict;
  const auto read = reader.Read({item}, kube::OutlineOf);
  const auto plain = strict.Parse(item);
  if (!plain.ok()) return;
  TRANCHE_CHECK(read.ok() && read->problem.empty());
  TRANCHE_CHECK(simdjson::minify(read->object) == simdjson::minify(*plain));
  // Keys with escapes are beyond outlines, and so are texts over their limit.
  if (item.find('\\') != std::string::npos || item.size() > 1024) return;
  const auto outline = outlines.Parse(kube::OutlineOf(item));
  TRANCHE_CHECK(outline.ok() && NameOf(*outline) == NameOf(*plain));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 7;
  const std::string text = fuzz::Padded(data + 1, size - 1);
  const auto items_of = [&](std::size_t step) {
    kube::ListItems list;
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size(); at += step) {
      const auto status =
          list.Feed(std::string_view(text).substr(at, step), [&found](const kube::JsonPiece& item) {
            found.emplace_back(item.text);
            return absl::OkStatus();
          });
      if (!status.ok()) break;
    }
    return std::pair(found, list.rest());
  };
  const auto whole = items_of(text.size() + 1);
  TRANCHE_CHECK(items_of(piece) == whole);
  for (const std::string& item : whole.first) CheckItem(item);
  return 0;
}
