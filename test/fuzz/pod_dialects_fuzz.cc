// What anyone may ask for, in every request style: records "a KEY=VALUE" are annotations, "l
// KEY=VALUE" limits of the app container and "i KEY=VALUE" of the init container, each ended by the
// byte 0x1E. Whatever they say, there are asks in order and within bounds, or a reason, never both.
#include <string>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "test/fuzz/input.h"

namespace {

using namespace tranche;

void AppendMember(std::string& object, std::string_view key, std::string_view value) {
  if (!object.empty()) object += ',';
  wire::AppendQuoted(object, key);
  object += ':';
  wire::AppendQuoted(object, value);
}

std::string PodOf(std::string_view text) {
  std::string annotations, init, app;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\x1e'), text.size());
    const std::string_view record = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = record.find('=');
    if (record.size() < 3 || equals == std::string_view::npos || equals < 2) continue;
    std::string& object = record[0] == 'a' ? annotations : record[0] == 'i' ? init : app;
    AppendMember(object, record.substr(2, equals - 2), record.substr(equals + 1));
  }
  return R"({"metadata":{"name":"p","annotations":{)" + annotations +
         R"(}},"spec":{"initContainers":[{"name":"i","resources":{"limits":{)" + init +
         R"(}}}],"containers":[{"name":"main","resources":{"limits":{)" + app + "}}}]}}";
}

void CheckAsk(const Ask& ask) {
  TRANCHE_CHECK(ask.container >= 0 && ask.container < 2);
  TRANCHE_CHECK(ask.count >= 1);
  TRANCHE_CHECK(ask.compute >= MilliGpu::Zero() && ask.compute <= MilliGpu::Of(1000));
  const int64_t memory = ask.memory.value;
  switch (ask.memory.kind) {
    case MemoryNeed::Kind::kNone:
    case MemoryNeed::Kind::kWholeCard:
      TRANCHE_CHECK(memory == 0);
      break;
    case MemoryNeed::Kind::kMib:
    case MemoryNeed::Kind::kAgentUnits:
      TRANCHE_CHECK(memory >= 1 && memory <= int64_t{1} << 31);
      break;
    case MemoryNeed::Kind::kMilliOfCard:
      TRANCHE_CHECK(memory >= 1 && memory <= 999);
      break;
    case MemoryNeed::Kind::kPercentOfCard:
      TRANCHE_CHECK(memory >= 1 && memory <= 100);
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static wire::Parser parser;
  const std::string json = PodOf({reinterpret_cast<const char*>(data), size});
  const auto document = parser.Parse(json);
  TRANCHE_CHECK(document.ok());
  const auto pod = wire::DecodePod(*document);
  if (!pod.ok()) return 0;
  const PodRequest& request = pod->request;
  TRANCHE_CHECK(request.asks_gpu() == (request.refusal.has_value() || !request.asks.empty()));
  TRANCHE_CHECK(!request.refusal || (request.asks.empty() && !request.refusal->detail.empty()));
  for (std::size_t i = 0; i < request.asks.size(); ++i) {
    CheckAsk(request.asks[i]);
    TRANCHE_CHECK(i == 0 || request.asks[i - 1].container <= request.asks[i].container);
  }
  for (const PoolNeed& need : request.pool_needs) TRANCHE_CHECK(need.count > 0);
  return 0;
}
