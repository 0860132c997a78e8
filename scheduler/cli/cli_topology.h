// tranche topology show|best FILE: a machine drawn, and the sets of GPUs a scheduler would take.
//
// FILE holds the text of `nvidia-smi topo -m`; "-" is standard input. No server is asked. GPUs are
// numbered as in their names (GPU3 is 3). What is odd in the text goes to `err`, line by line, and
// changes no exit code: 0 done, 1 no such set, 2 the file cannot be read or an option is wrong.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace tranche {

// Draws the machine; in colour on a terminal. As JSON:
//   {"machine": "...", "gpus": [{"number": 0, "numa": 0 | null, "cpus": "0-19" | null}],
//    "links": [{"gpus": [0,1], "nvlinks": 2, "path": null | "SYS"}],   every pair
//    "nics": [{"name": "mlx5_0", "fabric": true, "paths": ["PIX",...]}], by GPU
//    "problems": ["line 2, ..."]}
int ShowTopology(const std::string& file, bool json, std::ostream& out, std::ostream& err);

struct BestSetsOptions {
  std::string file;
  std::vector<int> gpus;  // sizes of sets; empty: 2 to 8, as far as GPUs are free
  std::vector<int> free;  // GPUs by number; empty: all
  std::size_t most = 3;   // sets of each size, best first
  bool json = false;
};

// The best sets of each size, by the key of topology/machine/machine_table.h. As JSON:
//   {"machine": "hybrid cube mesh of 8 GPUs (NV1 to NV2)", "free": [0,1,...], "sets": [{
//      "gpus": 4, "set": [0,1,2,3],
//      "connected": true,                                  every pair has NVLink
//      "ring": {"nvlinks": 1, "order": [0,1,2,3]} | null,  weakest hop; null: no NVLink ring
//      "links": 9,                                         NVLinks over all pairs
//      "path": null | "SYS",                               the worst among pairs without NVLink
//      "numaNodes": 1, "left": [4,5,6,7],
//      "loss": 0,         0 as good as on the idle machine .. 6 no longer connected
//      "damage": 0,       0..15, how much of what stays free is spoilt
//      "exact": true}], "problems": ["line 2, ..."]}
// A size for which there is no set is absent from "sets".
int ShowBestSets(const BestSetsOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tranche
