// POST /admission/mutate, /admission/mutate/hami and /admission/validate: what API servers ask
// before they create or change a pod (charts/webhook.yaml).
//
//   mutate    new pods: spec.schedulerName of GPU pods (a warning where it is another's, who may
//             be gone), fractions of nvidia.com/gpu as annotations,
//             a count for vGPUs of Volcano and vgpu-manager that name none, forged results taken
//             away, scheduling gates where they are on, what autoscalers are to leave alone,
//             HAMi's amounts of a part of a card as an annotation where that is wanted
//   mutate/hami  the same, and a count for shares that name none, as HAMi's webhook gives it
//   validate  new pods: requests that can never be met, forged results; changed pods: results
//
// Which namespaces are asked about is the webhook's configuration to say. Dry runs are answered
// alike, for no answer has a side effect but a count. A body that is no AdmissionReview is a 400
// with the reason; objects that are no pods are allowed untouched. Nothing of a pod is logged.
//
// Thread rule: handlers on any thread. Cost: some ten microseconds, of GPU pods with gates on that
// of a filter call besides.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scheduler/api/router.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/pod_claims.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"
#include "topology/base/units.h"

namespace tranche {

// Which GPU pods autoscalers are told to leave alone, unless a pod says something of it itself.
enum class Spare : uint8_t {
  kNone,
  kGangs,  // members of gangs: one that goes ends the work of all
  kLong,   // these, and work that declares to run for kLongRuntime or longer
};
inline constexpr Millis kLongRuntime{3'600'000};

// Where HAMi's amounts of a part of a card stand.
enum class HamiLimits : uint8_t {
  kResources,   // as pods name them
  kAnnotation,  // tranche.dev/hami-limits, of pods that are ours
};

// What the admission webhook does.
struct AdmissionOptions {
  std::string scheduler_name = "gpu-scheduler";  // for GPU pods that name none
  // Other schedulers whose GPU pods get this one too: those that are no longer there.
  std::vector<std::string> take_over;
  // Pods that quota or their gang lets wait get a scheduling gate, so that autoscalers stay quiet.
  bool gates = false;
  Spare spare = Spare::kNone;
  HamiLimits hami_limits = HamiLimits::kResources;
  bool show_devices = false;       // pods with shares see the cards that a Binding names
  bool count_hami_shares = false;  // on every path, as /admission/mutate/hami does it
  // Users and groups that may write what schedulers and node agents write on pods. A group is
  // trusted with all its members: one of service accounts holds the controllers that copy what
  // users write into pods.
  std::vector<std::string> trusted_users = {
      "system:nodes",
      "system:serviceaccount:tranche-system:tranche",
      "system:serviceaccount:kube-system:hami-device-plugin",
      "system:serviceaccount:kube-system:volcano-device-plugin",
      "system:serviceaccount:kube-system:gpushare-device-plugin",
  };
};

// What the engine says of a new pod; nothing where it cannot say.
struct AdmissionWord {
  bool wants_gpus = false;  // by its request, or by its resource claims
  GateSet gates;            // that it should have
};
using AdmissionQuestion =
    std::function<AdmissionWord(const PodRequest& request, const dra::PodClaims& claims)>;

// Asks the host's engine; on stale knowledge no pod is made to wait.
AdmissionQuestion AskEngine(Host& host);

// `metrics` outlives the router's use.
void AddAdmissionApi(AdmissionOptions options, AdmissionQuestion ask_engine,
                     metrics::Metrics& metrics, Router& router);

}  // namespace tranche
