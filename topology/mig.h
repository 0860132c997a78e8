// MIG: which profiles a board knows, where their instances may start, and which sets are legal.
//
// Legality always follows from placements (start, size in memory units), never from lists of
// layouts and never from the profile's name. Source: NVIDIA MIG user guide, NVML placement tables
// (facts cited in mig_catalog.cc). Everything here is immutable after start; any thread may read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/base/units.h"

namespace tranche {

struct MigProfile {
  std::string_view name;                  // canonical, "1g.10gb+me"
  int compute_slices = 0;                 // of the board's compute_slices
  int size = 0;                           // memory units an instance occupies
  int max_instances = 0;                  // on an otherwise empty board
  std::optional<Mebibytes> memory;        // as reported; nullopt where nobody has published it
  std::vector<int> starts;                // legal first units, ascending
  int media_engines = 0;                  // shared media engines (OFA) it takes: 0 or 1
  int codec_engines = 0;                  // of the board's codec_engines
  std::vector<std::string_view> aliases;  // other spellings some drivers use, "3g.39gb"
};

struct MigBoard {
  std::string_view id;                     // "h100-80"
  std::vector<std::string_view> products;  // GFD product labels
  int64_t memory_gb = 0;                   // nominal
  int compute_slices = 0;
  int units = 0;          // of memory
  int media_engines = 1;  // OFA, all that its instances may take together
  int codec_engines = 0;  // NVDEC = NVENC = NVJPG; 0: they bind nothing
  std::vector<MigProfile> profiles;
};

// All boards with an established geometry.
std::span<const MigBoard> MigBoards();

// The board a GFD product label names, "-SHARED" and "-MIG-..." suffixes taken off. Boards of one
// name, and names the catalogue lacks of a family it has, are told apart by the profile in the
// label and by the memory (zero: unknown; ignored where the label names a profile, since it is then
// that of the slice). nullptr when the catalogue has none or cannot tell.
const MigBoard* FindMigBoard(std::string_view product, Mebibytes memory);

// Those with a product of that GpuModelName: some models come as several boards.
std::vector<const MigBoard*> BoardsOfModel(std::string_view model);

// The profile of a board by name or alias; nullptr when the board has none of that name.
const MigProfile* FindMigProfile(const MigBoard& board, std::string_view name);

// What a profile name says by itself: "<C>g.<GB>gb[+attr|-attr]" with 1 <= C <= 7. Used to tell a
// well-formed name from nonsense; slices are never taken from it where a board is known.
bool IsMigProfileName(std::string_view name);

// A resource name's tail as the device plugin writes it ("1g.10gb.me", "1g.5gb.shared").
struct MigResourceName {
  std::string profile;  // canonical: "1g.10gb+me"
  bool shared = false;
  friend bool operator==(const MigResourceName&, const MigResourceName&) = default;
};
// The extended resources of NVIDIA's device plugin.
inline constexpr std::string_view kGpuKey = "nvidia.com/gpu";
inline constexpr std::string_view kGpuSharedKey = "nvidia.com/gpu.shared";  // replicas, renamed
// Reads what follows "nvidia.com/mig-"; nullopt when it is no profile.
// Examples: "1g.24gb.me.all.shared" -> {"1g.24gb+me.all", true}
//           "1g.5gb-me" -> {"1g.5gb-me", false}
std::optional<MigResourceName> ParseMigResourceTail(std::string_view tail);
// The inverse: {"1g.10gb+me", false} -> "nvidia.com/mig-1g.10gb.me".
std::string FormatMigResource(const MigResourceName& name);

struct MigInstance {
  const MigProfile* profile = nullptr;
  int start = 0;
};

// True when the instances may exist together on one GPU of the board.
bool IsLegalMigSet(const MigBoard& board, std::span<const MigInstance> instances);

// Puts `counts[i]` instances of board.profiles[i] on `gpus` GPUs so that every GPU's set is legal.
// Result: gpu -> instances, ascending start; nullopt when there is no such layout (or none was
// found within the step bound: 100,000 placements tried).
// Cost: microseconds for a node as people cut them, about 0.1 s where the bound ends the search.
// Called when a node changes.
std::optional<std::vector<std::vector<MigInstance>>> LayOutMig(const MigBoard& board,
                                                               std::span<const int> counts,
                                                               int gpus);

}  // namespace tranche
