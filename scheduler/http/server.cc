#include "scheduler/http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/http/session.h"
#include "scheduler/http/tls.h"

namespace tranche::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

// Connections above the cap that may wait for their 503 or their probe at the same time.
constexpr std::size_t kSpares = 16;
// Handshakes may take this part of the places: they cost the most, and nothing is known of who
// begins one.
constexpr std::size_t kHandshakePart = 4;
constexpr std::size_t kFewestHandshakes = 4;
// The process is out of file descriptors or memory: accepting again at once would spin.
constexpr milliseconds kAcceptPause{100};

// Deadlines are met at most this much late.
milliseconds SweepPeriod(const Limits& limits) {
  const milliseconds shortest =
      std::min({limits.header_time, limits.request_time, limits.idle_time, limits.reply_time});
  return std::clamp(shortest / 10, milliseconds(5), milliseconds(500));
}

}  // namespace

// Each thread runs a context of its own, and connections are dealt out among them: a request then
// never moves between threads, which would cost two wake-ups. Accepting, admission and the sweep
// run on one strand of the first, `control`.
struct Server::Impl {
  using Strand = Session::Strand;
  using Acceptor = asio::basic_socket_acceptor<tcp, Strand>;
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Strand>;

  Impl(Options given, Handler handler)
      : options(std::move(given)),
        contexts(MakeContexts(options.threads)),
        control(asio::make_strand(*contexts.front())),
        acceptor(control),
        sweep(control),
        accept_pause(control) {
    state.limits = options.limits;
    state.handler = std::move(handler);
    state.admit = options.admit;
    state.warn = options.warn;
    if (options.tls) tls = std::make_unique<TlsMaterial>(*options.tls);
  }

  static std::vector<std::unique_ptr<asio::io_context>> MakeContexts(int threads) {
    std::vector<std::unique_ptr<asio::io_context>> made;
    for (int i = 0; i < std::max(1, threads); ++i) {
      made.push_back(std::make_unique<asio::io_context>(1));
    }
    return made;
  }
  error_code Listen();
  void Accept();
  void Admit(std::shared_ptr<Session> session);
  void Sweep();
  void LookForCertificate(std::chrono::steady_clock::time_point now);
  void BeginStop();

  Options options;
  ServerState state;
  std::unique_ptr<TlsMaterial> tls;  // null: plain text
  std::vector<std::unique_ptr<asio::io_context>> contexts;
  Strand control;
  Acceptor acceptor;
  Timer sweep;
  Timer accept_pause;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> work;
  std::vector<std::thread> threads;
  uint16_t port = 0;
  // Control only.
  std::chrono::steady_clock::time_point looked_at;  // for another certificate
  std::size_t dealt = 0;  // connections so far, for the next one's context
  // Stopping: nothing is accepted. Ending: the sweep rests too.
  bool stopping = false;
  bool ending = false;
};

error_code Server::Impl::Listen() {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) return error;
  const tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port = acceptor.local_endpoint(error).port();
  if (error) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

void Server::Impl::Accept() {
  asio::io_context& context = *contexts[dealt++ % contexts.size()];
  acceptor.async_accept(asio::make_strand(context), [this](const error_code& error,
                                                           Session::Socket socket) {
    if (stopping) return;
    if (!error) {
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      Admit(std::make_shared<Session>(std::move(socket), tls ? tls->context() : nullptr, state));
      return Accept();
    }
    if (error == asio::error::connection_aborted) return Accept();
    accept_pause.expires_after(kAcceptPause);
    accept_pause.async_wait([this](const error_code&) {
      if (!stopping) Accept();
    });
  });
}

void Server::Impl::Admit(std::shared_ptr<Session> session) {
  if (stopping) return;
  ConnectionTable& table = state.table;
  const auto places = static_cast<std::size_t>(options.limits.connections);
  if (tls != nullptr) {
    const std::size_t most = std::max(places / kHandshakePart, kFewestHandshakes);
    if (const std::shared_ptr<Session> slow = table.ExcessHandshake(most)) {
      table.Remove(slow.get());
      table.CountEviction();
      slow->Abort();
    }
  }
  if (table.Count(Place::kOrdinary) < places) {
    table.Add(session, Place::kOrdinary);
    return session->Start(Place::kOrdinary);
  }
  if (const std::optional<GivesWay> other = table.FindPlaceFor(session->address())) {
    // A refusal means that a request came in meanwhile: the next round sees it as active.
    return other->session->GiveWay(other->pressure,
                                   [this, session = std::move(session)](bool gone) {
                                     if (gone) state.table.CountEviction();
                                     asio::post(control, [this, session] { Admit(session); });
                                   });
  }
  if (table.Count(Place::kSpare) >= kSpares) {
    if (const std::shared_ptr<Session> oldest = table.OldestSpare()) {
      table.Remove(oldest.get());
      oldest->Abort();
    }
  }
  table.Add(session, Place::kSpare);
  session->Start(Place::kSpare);
}

void Server::Impl::Sweep() {
  sweep.expires_after(SweepPeriod(options.limits));
  sweep.async_wait([this](const error_code& error) {
    if (error || ending) return;
    const auto now = std::chrono::steady_clock::now();
    for (const std::shared_ptr<Session>& session : state.table.All()) session->CheckDeadline(now);
    LookForCertificate(now);
    Sweep();
  });
}

void Server::Impl::LookForCertificate(std::chrono::steady_clock::time_point now) {
  if (tls == nullptr || now - looked_at < options.tls->look_every) return;
  looked_at = now;
  const absl::Status read = tls->Refresh();
  if (!read.ok() && options.warn) {
    options.warn("the certificate in use stays: " + std::string(read.message()));
  }
}

void Server::Impl::BeginStop() {
  stopping = true;
  error_code ignored;
  acceptor.close(ignored);
  accept_pause.cancel();
  for (const std::shared_ptr<Session>& session : state.table.All()) session->Drain();
}

Server::Server(Options options, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}

Server::~Server() { Stop(milliseconds(0)); }

absl::Status Server::Start() {
  const Options& options = impl_->options;
  if (impl_->tls != nullptr) {
    if (absl::Status read = impl_->tls->Refresh(); !read.ok()) return read;
  }
  if (const error_code error = impl_->Listen()) {
    return absl::UnavailableError(fmt::format("cannot listen on {} port {}: {}", options.address,
                                              options.port, error.message()));
  }
  for (const auto& context : impl_->contexts) impl_->work.emplace_back(context->get_executor());
  asio::post(impl_->control, [impl = impl_.get()] {
    impl->Accept();
    impl->Sweep();
  });
  for (const auto& context : impl_->contexts) {
    impl_->threads.emplace_back([context = context.get()] { context->run(); });
  }
  return absl::OkStatus();
}

uint16_t Server::port() const { return impl_->port; }

void Server::Stop(milliseconds grace) {
  if (impl_->threads.empty()) return;
  impl_->state.draining.store(true);
  asio::post(impl_->control, [impl = impl_.get()] { impl->BeginStop(); });
  impl_->state.table.WaitUntilEmpty(grace);
  std::promise<void> told;
  asio::post(impl_->control, [impl = impl_.get(), &told] {
    impl->ending = true;
    impl->sweep.cancel();
    for (const std::shared_ptr<Session>& session : impl->state.table.All()) session->Abort();
    told.set_value();
  });
  // A context whose connections all wait for their handlers has nothing to do, and would be gone
  // before it hears.
  told.get_future().wait();
  impl_->work.clear();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
  const absl::MutexLock lock(&impl_->state.gate->mutex);
  impl_->state.gate->open = false;
}

Statistics Server::statistics() const {
  Statistics statistics = impl_->state.table.Snapshot();
  if (impl_->tls != nullptr) statistics.certificate_end = impl_->tls->end();
  return statistics;
}

}  // namespace tranche::http
