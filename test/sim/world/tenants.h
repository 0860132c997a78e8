// Teams and what an administrator declared for them before anything ran: namespaces, priority
// classes, a tree of GPUQuotas, budgets, classes and policies of a few shapes.
//
// Source: quota-model section 8 (the objects), scheduler/docs/admin-guide.md.
//
// Plain values, drawn from a seed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "test/sim/base/draws.h"
#include "test/sim/base/history.h"
#include "test/sim/world/fleet.h"

namespace tranche::sim {

struct Tenants {
  std::vector<std::string> namespaces;  // where pods are made
  std::vector<std::string> quotas;      // names of leaves
  std::vector<std::string> budgets;
  std::vector<std::pair<std::string, Json>> objects;  // resource, object; in order
};

// Namespaces that are always there: Tranche's own, and those of Kubernetes.
inline constexpr const char* kSystemNamespaces[] = {"default", "kube-system", "tranche-system",
                                                    "tranche-reservation"};

// The fleet's policy lets pods share cards though nobody but us divides them.
void AllowUnenforcedSharing(Tenants& tenants);
// Likewise: kube-scheduler is told nodes before it asks, in fleets of any size.
void NominateEarly(Tenants& tenants);
// Likewise: nodes that run little are emptied.
void Consolidate(Tenants& tenants);
// Likewise: nodes that are about to be taken away are drained.
void DrainNoticed(Tenants& tenants);
// A PodDisruptionBudget of this name over all pods of each namespace.
void GuardNamespaces(Tenants& tenants);
inline constexpr const char* kGuard = "all-of-us";
// Machines that have a pool are in it by their label, and quotas may have lines of it: one that
// users leave alone always has, so that it is told apart at all times.
void DeclarePool(Tenants& tenants, const std::string& pool);
inline constexpr const char* kPoolKeeper = "keeps-the-pool";
Tenants DrawTenants(Draws& draws, const std::vector<Machine>& machines, int hami_minor);
// The lines of a quota: some cards of each model there is, or of each model and pool.
Json QuotaLines(Draws& draws, const std::vector<Machine>& machines, int teams);

}  // namespace tranche::sim
