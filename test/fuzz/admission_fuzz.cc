// Reviews as API servers send them: read leniently they say what they say read strictly, and no
// forged result goes unseen.
#include <string>
#include <vector>

#include "scheduler/wire/json/lenient_parser.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/protocol/admission_pod.h"
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tranche;
  static wire::Parser strict;
  static wire::LenientParser lenient;
  const std::string body = fuzz::Padded(data, size);
  const auto plain = strict.Parse(body, wire::Padding::kThere);
  const auto document = lenient.Parse(body, wire::Padding::kThere);
  if (plain.ok()) {
    TRANCHE_CHECK(document.ok() && simdjson::minify(*plain) == simdjson::minify(*document));
  }
  if (!document.ok()) return 0;
  const auto ask = wire::ReadAdmissionReview(*document);
  if (!ask.ok() || !ask->object) return 0;
  const wire::Object pod = ask->object->get_object().value();
  const std::string_view key = wire::FindResultKey(pod);
  TRANCHE_CHECK(key.empty() || body.find('\\') != std::string::npos ||
                body.find(key) != std::string::npos);
  if (ask->before) {
    const wire::Object before = ask->before->get_object().value();
    TRANCHE_CHECK(wire::FindChangedResult(pod, pod).empty());
    if (wire::FindResultKey(before).empty()) {
      TRANCHE_CHECK(wire::FindChangedResult(before, pod) == key);
    }
  }
  const std::vector<std::string> gone = {"volcano"};
  const wire::MutationRules rules{"tranche", gone, true, true};
  const wire::PodMutation mutation(pod, rules);
  if (mutation.refusal()) return 0;
  const std::string patch = mutation.patch();
  if (!patch.empty()) TRANCHE_CHECK(lenient.Parse(patch).ok());
  return 0;
}
