// YAML as files and bodies bring it: read in bounded room, and what comes out is JSON.
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/yaml_to_json.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  const auto json = embedded::YamlToJson(fuzz::Padded(data, size));
  if (!json.ok()) return 0;
  constexpr std::size_t kMostOfAliases = 4 * 1024 * 1024;
  TRANCHE_CHECK(json->size() <= kMostOfAliases + 8 * size + 64);
  static wire::Parser parser;
  TRANCHE_CHECK(parser.Parse(*json).ok());
  return 0;
}
