// What the engine keeps of resource.k8s.io: the objects, the pods that use claims, and what claims
// are charged.
//
// A claim is charged once, to its own namespace, from its allocation until that ends, however many
// pods use it. What filter lets in is kept for a moment, so that pods that come together do not all
// get what one of them may have. Devices are chosen by kube-scheduler alone; here they are
// predicted to order nodes. A part of the engine's books; nobody but engine files includes this.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quota/tree/model_charge.h"
#include "scheduler/dra/allocate.h"
#include "scheduler/dra/catalog.h"
#include "scheduler/engine/claims/claim_scores.h"
#include "scheduler/engine/engine.h"
#include "scheduler/facts/pod_claims.h"
#include "scheduler/index/node_names.h"

namespace tranche {

struct RequestContext;

// A pod that uses claims and asks for GPUs in no other way.
struct DraPod {
  std::shared_ptr<const PodRequest> request;
  std::shared_ptr<const dra::PodClaims> claims;
  NodeName node;
  bool quota_gate = false;   // ours
  bool other_gates = false;  // ours for its gang, or somebody else's
  Instant waits_since;
  // Some node has GPUs its claims could get, or they hold some: known from the first filter on.
  bool wants_gpus = false;
  std::vector<NodeId> ranked;  // answer of the last filter, best first
  Reason last_reason = Reason::kNone;
  std::vector<ModelCharge> asked;
  std::optional<Instant> eligible_at;
  std::optional<Instant> told;  // poked, or its gate's removal asked for
};

struct DraBooks {
  struct Held {
    int interval = 0;
    NodeName node;
  };

  DraScores scores;
  std::map<PodUid, DraPod> pods;
  std::set<std::pair<PodName, PodUid>> by_name;
  // Charged claims, by the key they have in the quota's books.
  std::map<PodUid, Held> held;
  // Kept for pods that were let in, by the same keys: until when; nullopt: until it is asked again.
  std::map<PodUid, std::optional<Instant>> kept;
  // Pods that ask for extended resources, and the nodes where DRA serves these: best first, by the
  // last filter.
  std::map<PodUid, std::vector<NodeId>> served;
  std::set<PodUid> unknown;  // pods with a claim nobody has shown yet
  bool complete = false;     // the first complete set of objects is in
  uint64_t looked = 0;       // quota's books when waiting pods were looked at last, and the time
  Instant looked_at;
};

// Does all that is done with the engine's DraBooks.
class DraDesk {
 public:
  explicit DraDesk(Engine::Impl& engine) : engine_(engine), books_(BooksOf(engine)) {}

  void Put(dra::Object object, Instant now);
  void Remove(const dra::ObjectRef& object, Instant now);
  void NotePod(const PodFacts& pod, bool ended, Instant now);
  void ForgetPod(const PodUid& uid);
  void FinishRestore(Instant now);
  void Adopt(Instant now);
  void Tend(Instant now);
  std::optional<Instant> Due() const;

  // A pod without any other GPU wish. False: its claims are of no concern here.
  bool Filter(const PodRequest& request, std::span<const std::string_view> candidates, Instant now,
              FilterAnswer& answer);
  // Ranks of the last filter; false: there was none.
  bool Rank(const PodUid& uid, std::span<const std::string_view> candidates,
            std::vector<int>& ranks);
  // ---- extended resources (claim_served.cc)
  // Of the candidates refused because the device plugin shows no GPU there, those where DRA serves
  // what the pod asks for, go to the end of the chosen ones.
  void AddServed(const RequestContext& context, std::size_t width, Instant now,
                 FilterAnswer& answer);
  // Was the node chosen that way?
  bool IsServed(const PodUid& uid, NodeId id) const;
  // DRA may serve the node: no card of it is the device plugin's.
  bool HasOnlyDraGpus(NodeId id) const;
  // What it would cost, and whether quota lets it in, before there is a pod.
  DraWord WordFor(const PodRequest& request, const dra::PodClaims& claims, Instant now);

  // ---- for people (claim_views.cc)
  std::optional<Explanation> Explain(const PodName& pod, Instant now);
  PodView ViewPod(const PodUid& uid, const DraPod& pod);
  void ViewGpus(NodeId id, NodeView& view);
  std::vector<std::pair<PodUid, const DraPod*>> WaitingPods() const;
  void Audit(std::vector<std::string>& faults) const;

 private:
  struct Wanted {
    std::vector<const dra::Claim*> claims;             // those known, in order
    std::vector<std::unique_ptr<dra::Claim>> made_up;  // of extended resources and templates
    bool unknown = false;                              // some claim has not been seen
    bool holds_gpus = false;                           // one of them is allocated GPUs
  };
  struct NodeWord {
    std::vector<ModelCharge> parts;  // of claims not allocated yet
    dra::Prediction prediction;
    int64_t cost = 0;  // lower is better
    Reason reason = Reason::kNone;
  };

  struct Place {
    std::pair<int64_t, uint32_t> order;  // cost, rank of the name
    uint32_t position = 0;
    NodeId node = kNoNode;
  };
  struct CardViews;

  static DraBooks& BooksOf(Engine::Impl& engine);
  // Quota's answer to parts of the wish; `asked` remembers it by their number.
  Reason AskOnce(const RequestContext& context, const DraScores::Wish& wish, int parts, Instant now,
                 DraPod& pod, std::vector<std::optional<Reason>>& asked);
  // The candidates nothing refuses, unordered; `wants` becomes true where some device would do.
  std::vector<Place> PlacesFor(const RequestContext& context, const Wanted& wanted, DraPod& pod,
                               Instant now, FilterAnswer& answer, bool& wants);
  void ViewDevice(const dra::DeviceBook& book, CardViews& cards);
  void ViewHolder(const dra::Claim& claim, CardViews& cards);
  static PodUid KeyOf(const std::string& claim_uid) { return PodUid("claim/" + claim_uid); }
  // What is kept for claims that are still to be made for the pod.
  static PodUid KeyOf(const PodUid& pod) { return PodUid("claim/of-pod/" + pod.str()); }
  Wanted WantedOf(const std::string& ns, const dra::PodClaims& claims);
  Wanted WantedOf(const PodRequest& request);  // by its extended resources
  const dra::NodeBooks* BooksOn(NodeId id);
  std::vector<ModelCharge> PartsOn(const Wanted& wanted, NodeId id);
  NodeWord WordOn(const Wanted& wanted, NodeId id);
  // Where the scores of such claims are remembered; `own` where they cannot be for long.
  DraScores::Wish& WishOf(const Wanted& wanted, DraScores::Wish& own);
  DraScores::Score ScoreOn(const Wanted& wanted, NodeId id, DraScores::Wish& wish);
  // The first answer of quota on any node; kNone: one lets it in.
  Reason AskAnywhere(const RequestContext& context, const Wanted& wanted, Instant now,
                     std::vector<ModelCharge>& parts, std::optional<Instant>& eligible_at);
  void Keep(const PodRequest& request, const Wanted& wanted, NodeId id, Instant now);
  void Release(const PodUid& pod, const Wanted& wanted);
  void Unkeep(const PodUid& key);
  void LetIn(Instant now);
  void Recharge(const dra::Claim& claim, Instant now);
  void Open(const PodUid& key, const dra::Claim& claim, std::vector<ModelCharge> parts, Instant now,
            bool estimated);
  void Close(const PodUid& key, Instant now);
  static bool RankAs(const std::vector<NodeId>& ranked, const std::vector<NodeId>& ids,
                     std::vector<int>& ranks);
  void PutClaim(dra::Claim claim, Instant now);
  void RechargePool(const dra::PoolName& pool, Instant now);
  std::string ClassOf(const dra::Claim& claim) const;
  NodeName NodeOf(const dra::Claim& claim) const;
  ResourceClaimView ViewClaim(const dra::Claim& claim);
  std::optional<Allocation> AllocationOf(const DraPod& pod);
  NodeVerdict VerdictOn(const RequestContext& context, const Wanted& wanted, bool pending,
                        NodeId id, Instant now, NodeWord& word);

  Engine::Impl& engine_;
  DraBooks& books_;
};

}  // namespace tranche
