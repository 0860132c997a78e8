// What a kube-scheduler process believes of the cluster: nodes with the pods it has seen on them,
// and pods it assumes to be bound though it has not seen that yet.
//
// Source: kube-scheduler-extender sections 3.5, 3.6 (assumed pods do not expire) and 3.7.
//
// A plain value of one thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "test/sim/world/pod_view.h"

namespace tranche::sim {

using PodViewPtr = std::shared_ptr<const PodView>;

class SchedulerCache {
 public:
  struct Node {
    std::shared_ptr<const NodeView> view;  // null: gone, and pods are still there
    Amounts used;
    std::map<std::string, PodViewPtr> pods;  // by uid, assumed ones among them
  };

  void SetNode(StoredPtr node);
  void RemoveNode(const std::string& name);
  void SetPod(PodViewPtr pod);
  void RemovePod(const std::string& uid);
  void Assume(const PodViewPtr& pod, const std::string& node);
  void Forget(const std::string& uid);
  bool assumes(const std::string& uid) const { return assumed_.contains(uid); }

  // Null: not known.
  PodViewPtr Pod(const std::string& uid) const;
  const Node* FindNode(const std::string& name) const;
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  // What keeps the pod from the node, those with at least its priority that are nominated there
  // counted in; empty: nothing.
  std::string WhyNot(const PodView& pod, const Node& node) const;
  void Clear();

 private:
  void Place(const PodViewPtr& pod, const std::string& node);
  void Unplace(const std::string& uid);

  std::map<std::string, Node> nodes_;
  std::map<std::string, PodViewPtr> pods_;
  std::map<std::string, std::string> placed_;     // uid -> node
  std::set<std::string> assumed_;                 // uids
  std::map<std::string, std::string> nominated_;  // uid of one that waits -> node
};

}  // namespace tranche::sim
