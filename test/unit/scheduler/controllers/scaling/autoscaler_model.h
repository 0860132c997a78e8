// What cluster-autoscaler does with ProvisioningRequests, as far as Tranche can see it: a model,
// each rule with the file of kubernetes/autoscaler it is from (paths below cluster-autoscaler/).
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/advice/case.h"
#include "scheduler/controllers/scaling/provisioning_plan.h"
#include "scheduler/ports/pod_marks.h"
#include "scheduler/ports/provisioning.h"

namespace tranche::test {

// The API server and the autoscaler in one: requests and pods as they are stored, and a loop.
class AutoscalerModel : public ProvisioningRequests, public PodMarks {
 public:
  // processors/provreq/processor.go: defaultReservationTime, defaultExpirationTime.
  static constexpr Millis kReservation{600'000};
  static constexpr Millis kExpiration{7 * 24 * 3'600'000LL};

  // The waiting pods, as the API server has them.
  AdviceCase cluster;
  // Pods for which there is room now, and for which nodes could be raised.
  int64_t room = 0;
  int64_t stock = 0;
  ProvisioningList::Kind kind = ProvisioningList::Kind::kListed;
  bool takes_requests = true;  // false: 403
  bool answers = true;         // false: lists get no answer

  std::vector<std::string> log;    // what was asked of the API server
  int64_t raised_one_by_one = 0;   // pods that got nodes of the ordinary way
  int64_t raised_all_at_once = 0;  // by requests

  void ListProvisioning(std::function<void(ProvisioningList)> done) override {
    ++lists;
    if (!answers) return unanswered.push_back(std::move(done));
    ProvisioningList list;
    list.kind = kind;
    for (const auto& [name, stored] : requests_) list.found.push_back(stored.found);
    done(std::move(list));
  }
  void Provision(ProvisioningWrite write, std::function<void(WriteResult)> done) override {
    log.push_back("make " + write.gang);
    if (!takes_requests) return done({WriteResult::Kind::kRejected, 403, "no"});
    Stored stored;
    stored.created = cluster.now;
    stored.found.name = write.name;
    stored.found.gang = write.gang;
    stored.found.provisioning_class = write.provisioning_class;
    for (const ProvisioningSet& set : write.sets) {
      stored.found.pods += set.count;
      stored.found.templates.push_back(write.name.name + "-0");
    }
    const bool made = requests_.emplace(write.name, std::move(stored)).second;
    done({made ? WriteResult::Kind::kDone : WriteResult::Kind::kRejected, made ? 201 : 409, ""});
  }
  void Unprovision(ProvisioningFound request, std::function<void(WriteResult)> done) override {
    log.push_back("delete " + request.gang);
    requests_.erase(request.name);
    done({WriteResult::Kind::kDone, 200, ""});
  }
  void MarkPod(PodMarkWrite write, std::function<void(WriteResult)> done) override {
    ++marks;
    const auto pod = std::ranges::find(cluster.waiting, write.uid, &AdviceWaiter::uid);
    if (pod == cluster.waiting.end()) return done({WriteResult::Kind::kRejected, 404, ""});
    pod->provisioning = write.marks.front().after.value_or("");
    done({WriteResult::Kind::kDone, 200, ""});
  }

  ProvisioningFound* Find(const std::string& gang) {
    for (auto& [name, stored] : requests_) {
      if (stored.found.gang == gang) return &stored.found;
    }
    return nullptr;
  }
  std::size_t size() const { return requests_.size(); }

  // One loop, which runs every ten seconds (FAQ.md, --scan-interval).
  void Loop() {
    for (auto& [name, stored] : requests_) Refresh(stored);
    for (auto& [name, stored] : requests_) {
      if (TakeUp(stored)) break;
    }
    RaiseOneByOne();
  }
  // The nodes that were raised by requests are there and take the gang.
  void BindGang(const std::string& gang) {
    std::erase_if(cluster.waiting,
                  [&](const AdviceWaiter& waiter) { return waiter.request->gang == gang; });
  }

  int lists = 0;
  int marks = 0;
  std::vector<std::function<void(ProvisioningList)>> unanswered;

 private:
  struct Stored {
    ProvisioningFound found;
    Instant created;
  };

  void Set(Stored& stored, ProvisioningState state, const std::string& reason) const {
    stored.found.state = state;
    stored.found.since = cluster.now;
    stored.found.reason = reason;
  }
  // processors/provreq/processor.go, refresh: what was provisioned is booked for ten minutes; what
  // was not within seven days has failed.
  void Refresh(Stored& stored) const {
    const ProvisioningFound& found = stored.found;
    if (found.state == ProvisioningState::kProvisioned) {
      if (cluster.now - *found.since > kReservation) {
        Set(stored, ProvisioningState::kExpired, "CapacityReservationTimeExpired");
      }
    } else if (!HasEnded(found.state) && cluster.now - stored.created > kExpiration) {
      Set(stored, ProvisioningState::kFailed, "Expired");
    }
  }
  // processors/provreq/injector.go, GetPodsFromNextRequest: one request a loop, none that was
  // provisioned or failed; without its templates it has failed.
  bool TakeUp(Stored& stored) {
    ProvisioningFound& found = stored.found;
    if (HasEnded(found.state) || found.state == ProvisioningState::kProvisioned) return false;
    if (found.templates.empty()) {
      Set(stored, ProvisioningState::kFailed, "FailedToCreatePods");
      return false;
    }
    const bool raises =
        found.provisioning_class == "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
    // apis/provisioningrequest/.../types.go: check-capacity raises nothing.
    if (room >= found.pods) {
      Set(stored, ProvisioningState::kProvisioned, "CapacityIsFound");
    } else if (raises && room + stock >= found.pods) {
      // provisioningrequest/besteffortatomic/provisioning_class.go, Provision: all or nothing.
      stock -= found.pods - room;
      raised_all_at_once += found.pods - room;
      Set(stored, ProvisioningState::kProvisioned, "CapacityIsProvisioned");
    } else {
      Set(stored, ProvisioningState::kNotYet, "CapacityIsNotFound");
    }
    return true;
  }
  // processors/provreq/pods_filter.go: pods that say they use a request raise nothing by
  // themselves, whether there is such a request or not; all others do.
  void RaiseOneByOne() {
    for (const AdviceWaiter& waiter : cluster.waiting) {
      if (!waiter.provisioning.empty() || stock == 0) continue;
      --stock;
      ++raised_one_by_one;
    }
  }

  std::map<NamespacedName, Stored> requests_;
};

}  // namespace tranche::test
