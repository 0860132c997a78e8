// Objects of tranche.dev as anyone who may write them can make them.
#include "policy/decode.h"
#include "policy/disruption_budget.h"
#include "policy/policy_store.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  const std::string text = fuzz::Padded(data, size);
  PolicyStore store{GpuPolicy{}};
  for (const char* kind : {"GPUPolicy", "GPUQuota", "GPUBudget", "GPUClass", "GPUPool", "GPUPrice",
                           "GPUReclaim", "GPUQuotaView", "Namespace", "PriorityClass"}) {
    const absl::Status status = CheckObject(kind, text, GpuPolicy{});
    // Without a field or kind named, nobody finds the mistake.
    TRANCHE_CHECK(status.ok() || std::string(status.message()).find(": ") != std::string::npos);
    store.Upsert(kind, "a", text);
    store.Commit();
  }
  const absl::StatusOr<DisruptionBudget> budget = DecodeDisruptionBudget(text);
  TRANCHE_CHECK(!budget.ok() || budget->allowed >= 0);
  // Every object has one word on its validity, and a second look changes nothing.
  TRANCHE_CHECK(store.invalid() <= 6 && store.findings().size() >= 6);
  TRANCHE_CHECK(!store.Commit());
  return 0;
}
