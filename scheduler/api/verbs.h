// The four extender verbs over HTTP: filter, prioritize, preempt, bind.
//
// Bodies are decoded and encoded without the engine's lock, with scratch space that each server
// thread keeps, so that a warm call allocates nothing per candidate node. A body that is malformed
// anywhere is a 400 {"Error":...}; every domain answer is a 200, because kube-scheduler reads no
// other. Not ready: filter and bind say so in Error, prioritize and preempt have no field for it
// and answer 503. Source: kube-scheduler-extender sections 1-3; DESIGN sections 4 and 8.
//
// Thread rule: any thread, several at once.
#pragma once

#include "scheduler/api/router.h"
#include "scheduler/controllers/binder.h"
#include "scheduler/host/host.h"
#include "scheduler/http/server.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/wire/protocol/extender_v1.h"

namespace tranche {

class Verbs {
 public:
  Verbs(Host& host, Binder& binder, metrics::Metrics& metrics,
        wire::ReasonStyle style = wire::ReasonStyle::kOwn);

  // Adds POST /scheduler/{filter,prioritize,preempt,bind}. This must outlive the router's use.
  void AddTo(Router& router);

  void Filter(const http::Request& request, const http::Responder& respond);
  void Prioritize(const http::Request& request, const http::Responder& respond);
  void Preempt(const http::Request& request, const http::Responder& respond);
  void Bind(const http::Request& request, http::Responder respond);

 private:
  Host& host_;
  Binder& binder_;
  metrics::Metrics& metrics_;
  const wire::ReasonStyle style_;
};

}  // namespace tranche
