#include "scheduler/server/cpu_profile.h"

#include <execinfo.h>
#include <fmt/format.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/api/router.h"
#include "scheduler/server/log.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

constexpr int kMicrosBetween = 10'000;
constexpr int kMostFrames = 40;
constexpr std::size_t kMostSamples = 32'768;

struct Sample {
  void* at = nullptr;  // where the thread was interrupted
  int depth = 0;
  std::array<void*, kMostFrames> frames{};  // those of the handler first
};
struct Samples {
  std::vector<Sample> room = std::vector<Sample>(kMostSamples);
  std::atomic<std::size_t> used = 0;
};

// Reached by the signal's handler; null: no profile is taken.
std::atomic<Samples*> taken = nullptr;
std::atomic<int> handlers = 0;  // that are under way

void* InterruptedAt(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(registers.pc);
#else
#error "expected x86_64 or aarch64"
#endif
}

void TakeSample(int, siginfo_t*, void* context) {
  const int error = errno;
  ++handlers;
  if (Samples* const samples = taken.load(); samples != nullptr) {
    const std::size_t at = samples->used++;
    if (at < kMostSamples) {
      Sample& sample = samples->room[at];
      sample.at = InterruptedAt(context);
      sample.depth = backtrace(sample.frames.data(), kMostFrames);
    }
  }
  --handlers;
  errno = error;
}

void SetTimer(int micros) {
  itimerval timer{};
  timer.it_interval.tv_usec = micros;
  timer.it_value.tv_usec = micros;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

void Begin(Samples& samples) {
  // The first call loads a library, which no handler may do.
  std::array<void*, 1> frame{};
  backtrace(frame.data(), 1);
  taken = &samples;
  struct sigaction action {};
  action.sa_sigaction = TakeSample;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigaction(SIGPROF, &action, nullptr);
  SetTimer(kMicrosBetween);
}

// The handler stays: a signal that is under way would end the process otherwise.
void End() {
  SetTimer(0);
  taken = nullptr;
  while (handlers > 0) std::this_thread::yield();
}

void Append(std::string& out, std::initializer_list<uint64_t> words) {
  for (const uint64_t word : words) {
    const auto* const bytes = reinterpret_cast<const char*>(&word);
    out.append(bytes, sizeof(word));
  }
}

std::string ProfileOf(const Samples& samples) {
  using Stack = std::vector<void*>;
  std::map<Stack, uint64_t> counts;
  const std::size_t used = std::min(samples.used.load(), kMostSamples);
  for (std::size_t at = 0; at < used; ++at) {
    const Sample& sample = samples.room[at];
    if (sample.at == nullptr) continue;
    const auto* const end = sample.frames.data() + sample.depth;
    const auto* const first = std::find(sample.frames.data(), end, sample.at);
    ++counts[first == end ? Stack{sample.at} : Stack(first, end)];
  }
  std::string out;
  Append(out, {0, 3, 0, kMicrosBetween, 0});
  for (const auto& [stack, count] : counts) {
    Append(out, {count, stack.size()});
    for (void* const frame : stack) Append(out, {reinterpret_cast<uint64_t>(frame)});
  }
  Append(out, {0, 1, 0});
  std::ifstream maps("/proc/self/maps");
  out.append(std::istreambuf_iterator<char>(maps), {});
  return out;
}

http::Response ProfileResponse(const Samples& samples) {
  http::Response response;
  response.body = ProfileOf(samples);
  response.content_type = "application/octet-stream";
  response.headers["Content-Disposition"] = "attachment; filename=\"cpu.prof\"";
  return response;
}

}  // namespace

void CpuProfile::Answer(const http::Request& request, http::Responder respond) {
  if (request.method != "GET") {
    return respond(ErrorResponse(405, fmt::format("expected GET, found {}", request.method)));
  }
  int seconds = kUsualSeconds;
  if (const std::string text = Parameter(request, "seconds"); !text.empty()) {
    const bool digits =
        text.size() <= 2 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    seconds = digits ? std::stoi(text) : 0;
    if (seconds < 1 || seconds > kMostSeconds) {
      return respond(
          ErrorResponse(400, fmt::format("seconds: expected a number from 1 to {}, found {}",
                                         kMostSeconds, wire::Quoted(text))));
    }
  }
  const std::lock_guard lock(mutex_);
  if (running_ || stopped_) {
    return respond(AskLater(503, "another profile is being taken, ask again later", kMostSeconds));
  }
  if (thread_.joinable()) thread_.join();
  running_ = true;
  thread_ = std::thread([this, seconds, respond = std::move(respond)] {
    std::optional<http::Response> response;
    Guarded("a profile", [&] {
      const auto samples = std::make_unique<Samples>();
      Begin(*samples);
      {
        std::unique_lock waiting(mutex_);
        changed_.wait_for(waiting, std::chrono::seconds(seconds), [this] { return stopped_; });
      }
      End();
      response = ProfileResponse(*samples);
    });
    {
      const std::lock_guard ending(mutex_);
      running_ = false;
    }
    // Now, so that the next one can be asked for. What is dropped unanswered answers 500.
    if (response) respond(*std::move(response));
  });
}

void CpuProfile::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace tranche
