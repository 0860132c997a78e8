#include "test/sim/product/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <utility>

#include "scheduler/server/log.h"
#include "test/sim/product/mishaps.h"
#include "test/sim/product/replica.h"

namespace tranche::sim {
namespace {

// As the chart has it, but looked at more often.
constexpr SimTime kProbePeriod = std::chrono::seconds(1);
constexpr int kProbeFailures = 2;
// A kubelet's, for a container that ended.
constexpr SimTime kFirstRestart = std::chrono::seconds(1);
constexpr SimTime kLastRestart = std::chrono::seconds(8);

ServeConfig ConfigOf(const ReplicasOptions& options, const std::string& ledger) {
  ServeConfig config;
  config.cluster = ClusterKind::kKubernetes;
  config.elects = options.elects;
  config.election.ns = "tranche-system";
  config.election.name = "tranche";
  config.hami = options.hami;
  config.reservation = !options.reservation_image.empty();
  config.reservation_image = options.reservation_image;
  config.ledger = ledger;
  if (options.fail_open) config.ledger_failure = LedgerFailure::kOpen;
  return config;
}

Reply ReplyOf(http::Response response) {
  Reply reply;
  reply.code = response.status;
  const auto after = response.headers.find("Retry-After");
  if (after != response.headers.end()) reply.retry_after = std::stoi(after->second);
  reply.body = response.shared ? *response.shared : std::move(response.body);
  return reply;
}

}  // namespace

struct Replicas::Impl {
  // Of one who asks the Service.
  struct Call {
    Actor from;
    std::function<void(Reply)> done;
    bool over = false;
  };
  struct Slot {
    Slot(const Loop& loop, int index_of, std::chrono::seconds running)
        : index(index_of), clocks(loop, running) {}

    const int index;
    MachineClocks clocks;
    std::unique_ptr<Replica> life;  // null: it is dead
    int lives = 0;
    bool ready = false;
    bool answered = false;  // the last probe, with 200
    int failures = 0;
    std::list<std::weak_ptr<Call>> calls;
  };

  Impl(Loop& the_loop, History& the_history, Script& script, const FaultPlan& faults,
       ApiEndpoint& the_api, ReplicasOptions given);

  void Begin(Slot& slot);
  void End(Slot& slot, const std::string& why);
  // Soon after its process ended by itself.
  void Bury(Slot& slot, const std::string& why);
  void PowerCut(uint64_t seed);
  void Probe(Slot& slot);
  void Tick();
  void Finish(const std::shared_ptr<Call>& call, Reply reply);
  Slot* Pick();
  Slot* Leader();
  void Tell(Happening::Kind kind, const std::string& who, std::string text);
  Hurt HurtOf(Slot& slot);

  Loop& loop;
  History& history;
  ApiEndpoint& api;
  const ReplicasOptions options;
  const Actor self;
  Draws draws;
  std::unique_ptr<Volume> volume;  // null: no ledger is kept
  const ServeConfig config;
  std::list<Slot> slots;
  Mishaps mishaps;
  bool cut_at_death = false;  // the power goes with the process that ends next
};

Replicas::Impl::Impl(Loop& the_loop, History& the_history, Script& script, const FaultPlan& faults,
                     ApiEndpoint& the_api, ReplicasOptions given)
    : loop(the_loop),
      history(the_history),
      api(the_api),
      options(std::move(given)),
      self(loop.NewActor("replicas")),
      draws(Draws(options.seed).Fork(0x7265706c)),
      volume(options.ledger ? std::make_unique<Volume>(loop, options.folder, draws.Next())
                            : nullptr),
      config(ConfigOf(options, volume ? volume->ledger() : "")),
      mishaps(script, faults) {
  LogToStderr(options.log_level);
  if (volume) volume->set_queue_limit(options.ledger_queue);
  if (volume && options.bits_flip) volume->LetBitsFlip();
  for (int index = 0; index < options.replicas; ++index) {
    slots.emplace_back(loop, index, std::chrono::seconds(draws.Between(3'600, 1'000'000)));
  }
}

void Replicas::Impl::Tell(Happening::Kind kind, const std::string& who, std::string text) {
  Happening happening;
  happening.kind = kind;
  happening.who = who;
  happening.text = std::move(text);
  history.Add(std::move(happening));
}

void Replicas::Impl::Begin(Slot& slot) {
  if (slot.life) return;
  const std::string name = fmt::format("tranche-{}/{}", slot.index, ++slot.lives);
  Tell(Happening::Kind::kStarted, name, slot.lives == 1 ? "first" : "again");
  slot.life = std::make_unique<Replica>(loop, history, api, volume.get(), config, slot.clocks, name,
                                        Draws(draws.Next()), [this, &slot](const std::string& why) {
                                          loop.After(SimTime{0}, self,
                                                     [this, &slot, why] { Bury(slot, why); });
                                        });
  slot.life->Start();
}

void Replicas::Impl::End(Slot& slot, const std::string& why) {
  if (!slot.life) return;
  Tell(Happening::Kind::kEnded, slot.life->process().name(), why);
  slot.ready = slot.answered = false;
  slot.failures = 0;
  slot.life.reset();
  for (const std::weak_ptr<Call>& call : std::exchange(slot.calls, {})) {
    if (const auto open = call.lock()) Finish(open, Reply{});
  }
  const SimTime after{draws.Between(kFirstRestart.count(), kLastRestart.count())};
  loop.After(after, self, [this, &slot] { Begin(slot); });
}

void Replicas::Impl::Bury(Slot& slot, const std::string& why) {
  if (!slot.life || !slot.life->process().dead()) return;
  if (std::exchange(cut_at_death, false)) return PowerCut(draws.Next());
  End(slot, why);
}

// All replicas are on the node that the volume is attached to.
void Replicas::Impl::PowerCut(uint64_t seed) {
  Tell(Happening::Kind::kFault, "tranche", "power cut");
  if (volume) volume->CutPower();
  for (Slot& slot : slots) End(slot, "power cut");
  if (volume && volume->Restore(seed) == Volume::Left::kOneBitFlipped) {
    Tell(Happening::Kind::kFault, "tranche", "a bit on the ledger's disk flipped");
  }
}

void Replicas::Impl::Probe(Slot& slot) {
  slot.failures = slot.answered ? 0 : slot.failures + 1;
  if (slot.answered) slot.ready = true;
  if (slot.failures >= kProbeFailures) slot.ready = false;
  slot.answered = false;
  if (!slot.life) return;
  Replica& life = *slot.life;
  life.process().Soon([&slot, &life] {
    http::Request request;
    request.method = "GET";
    request.path = "/readyz";
    life.Answer(std::move(request), [&slot](const http::Response& response) {
      slot.answered = response.status == 200;
    });
  });
}

Hurt Replicas::Impl::HurtOf(Slot& slot) {
  Hurt hurt;
  hurt.kill = [this, &slot] { End(slot, "killed"); };
  hurt.life = slot.life.get();
  hurt.clocks = &slot.clocks;
  hurt.volume = volume.get();
  hurt.tell = [this, &slot](const std::string& what) {
    Tell(Happening::Kind::kFault, fmt::format("tranche-{}", slot.index), what);
  };
  hurt.cut_at_death = [this] { cut_at_death = true; };
  hurt.cut_power = [this](uint64_t seed) { PowerCut(seed); };
  return hurt;
}

void Replicas::Impl::Tick() {
  for (Slot& slot : slots) {
    Probe(slot);
    slot.calls.remove_if([](const std::weak_ptr<Call>& call) { return call.expired(); });
    mishaps.Strike(loop, self, HurtOf(slot));
  }
  loop.After(kProbePeriod, self, [this] { Tick(); });
}

void Replicas::Impl::Finish(const std::shared_ptr<Call>& call, Reply reply) {
  if (std::exchange(call->over, true)) return;
  const SimTime way{draws.Between(1, 100)};
  loop.After(way, call->from,
             [call, reply = std::move(reply)]() mutable { call->done(std::move(reply)); });
}

Replicas::Impl::Slot* Replicas::Impl::Pick() {
  std::vector<Slot*> ready;
  for (Slot& slot : slots) {
    if (slot.ready && slot.life) ready.push_back(&slot);
  }
  return ready.empty() ? nullptr : draws.Pick(ready);
}

Replicas::Impl::Slot* Replicas::Impl::Leader() {
  Slot* leader = nullptr;
  for (Slot& slot : slots) {
    const int64_t epoch = slot.life && !slot.life->process().dead() ? slot.life->epoch() : 0;
    if (epoch > 0 && (leader == nullptr || epoch > leader->life->epoch())) leader = &slot;
  }
  return leader;
}

Replicas::Replicas(Loop& loop, History& history, Script& script, const FaultPlan& faults,
                   ApiEndpoint& api, ReplicasOptions options)
    : impl_(std::make_unique<Impl>(loop, history, script, faults, api, std::move(options))) {}

Replicas::~Replicas() {
  impl_->loop.End(impl_->self);
  for (Impl::Slot& slot : impl_->slots) slot.life.reset();
}

void Replicas::Start() {
  for (Impl::Slot& slot : impl_->slots) {
    const SimTime after{impl_->draws.Between(0, 2'000'000)};
    impl_->loop.After(after, impl_->self, [this, &slot] { impl_->Begin(slot); });
  }
  impl_->loop.After(kProbePeriod, impl_->self, [this] { impl_->Tick(); });
}

void Replicas::Quiet() {
  impl_->mishaps.Quiet();
  impl_->cut_at_death = false;
  if (impl_->volume) impl_->volume->Heal();
  for (Impl::Slot& slot : impl_->slots) {
    slot.clocks.Mend();
    if (!slot.life) continue;
    slot.life->process().EndAfter(0, nullptr);
    slot.life->set_dies_when_told(false);
  }
}

void Replicas::Send(Actor from, Request request, SimTime timeout, std::function<void(Reply)> done) {
  const auto call = std::make_shared<Impl::Call>(Impl::Call{from, std::move(done)});
  Impl* const impl = impl_.get();
  Impl::Slot* const slot = impl->Pick();
  std::optional<http::Request> read = ReadRequest(request);
  if (slot == nullptr || !read) {
    Reply reply;
    reply.code = read ? 0 : 400;
    reply.sent = slot != nullptr;
    return impl->Finish(call, std::move(reply));
  }
  slot->calls.push_back(call);
  Replica& life = *slot->life;
  life.process().Soon([impl, call, &life, read = *std::move(read)]() mutable {
    life.Answer(std::move(read), [impl, call, &life](http::Response response) {
      // What its objects say while they are destroyed, a process that was killed has not said.
      if (life.process().dead()) return;
      impl->Finish(call, ReplyOf(std::move(response)));
    });
  });
  impl->loop.After(timeout, from, [call] {
    if (!std::exchange(call->over, true)) call->done(Reply{});
  });
}

std::optional<Json> Replicas::Ask(const std::string& target) {
  Impl::Slot* const slot = impl_->Leader();
  if (slot == nullptr) return std::nullopt;
  const std::optional<http::Response> answer = slot->life->Ask(target);
  if (!answer || answer->status != 200) return std::nullopt;
  Json json = Json::parse(answer->text(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

void Replicas::TellDoubts() {
  for (Impl::Slot& slot : impl_->slots) {
    if (slot.life) slot.life->TellDoubts();
  }
}

std::vector<std::string> Replicas::LedgerFiles() const {
  if (!impl_->volume) return {};
  return {impl_->volume->ledger()};
}

void Replicas::Crash(int replica) {
  for (Impl::Slot& slot : impl_->slots) {
    if (slot.index == replica) impl_->End(slot, "killed");
  }
}

std::optional<int> Replicas::leader() const {
  const Impl::Slot* const slot = impl_->Leader();
  if (slot == nullptr || !slot->ready) return std::nullopt;
  return slot->index;
}

}  // namespace tranche::sim
