#include "scheduler/api/foresight/forecast_api.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/api/api_json.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

constexpr std::string_view kAllPath = "/api/v1/forecast";
constexpr std::string_view kOnePath = "/api/v1/forecast/";

std::string EncodeAll(const Forecasts& forecasts) {
  std::string out = fmt::format(
      "{{\"at\":\"{}\",\"rehearsals\":{},\"exact\":{},\"judged\":"
      "{{\"before\":{},\"within\":{},\"after\":{}}},\"forecasts\":[",
      wire::FormatTime(forecasts.at), forecasts.rehearsals, forecasts.exact,
      forecasts.judged.before, forecasts.judged.within, forecasts.judged.after);
  bool first = true;
  for (const auto& [name, forecast] : forecasts.pods) {
    if (!std::exchange(first, false)) out += ',';
    out += "{\"namespace\":";
    wire::AppendQuoted(out, name.ns);
    out += ",\"name\":";
    wire::AppendQuoted(out, name.name);
    out += "," + EncodeForecast(forecast).substr(1);
  }
  return out + "]}";
}

// nullopt: it is none.
std::optional<PodName> NameIn(std::string_view path) {
  path.remove_prefix(kOnePath.size());
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == path.size() ||
      path.find('/', slash + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return PodName{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

// Of no time is later than any.
bool StartsLater(const Forecast& left, const Forecast& right) {
  if (!left.p50 || !right.p50) return !left.p50 && right.p50;
  return *left.p50 > *right.p50;
}

// Of the pod, or of the last member of the gang of that name; null: of neither.
const Forecast* FindIn(const Forecasts& forecasts, const PodName& name) {
  if (const auto pod = forecasts.pods.find(name); pod != forecasts.pods.end()) return &pod->second;
  const Forecast* last = nullptr;
  for (const auto& [pod, forecast] : forecasts.pods) {
    const bool member = pod.ns == name.ns && !forecast.gang.empty() && forecast.gang == name.name;
    if (member && (last == nullptr || StartsLater(forecast, *last))) last = &forecast;
  }
  return last;
}

}  // namespace

http::Response ForecastApi::One(const PodName& name) {
  const std::shared_ptr<const Forecasts> forecasts = forecaster_.Fresh();
  if (const Forecast* found = FindIn(*forecasts, name)) return JsonResponse(EncodeForecast(*found));
  const std::vector<PodView> pods =
      host_.With(EngineCaller::kPages,
                 [&name](Engine& engine, Instant) { return engine.Pods(name, PodUid(), 1); });
  if (pods.empty() || pods.front().name != name) {
    return ErrorResponse(
        404, fmt::format("no pod or waiting gang {} is known", wire::Quoted(name.str())));
  }
  const PodView& pod = pods.front();
  Forecast none;
  const bool placed = pod.state == PodState::kBound || pod.state == PodState::kReserved;
  none.because = placed ? "it has its place on " + pod.node.str()
                        : "it came after the last forecast, of " + wire::FormatTime(forecasts->at);
  return JsonResponse(EncodeForecast(none));
}

http::Response ForecastApi::Answer(const http::Request& request) {
  if (request.path == kAllPath) return JsonResponse(EncodeAll(*forecaster_.Fresh()));
  const std::optional<PodName> name = NameIn(request.path);
  if (name) return One(*name);
  return ErrorResponse(404, fmt::format("expected {}NAMESPACE/NAME, found {}", kOnePath,
                                        wire::Quoted(request.path.substr(kOnePath.size()))));
}

void ForecastApi::Ask(http::Request request, http::Responder respond) {
  if (++waiting_ > kMostWaiting) {
    --waiting_;
    return respond(AskLater(503, "too many questions are waiting, ask again later", 2));
  }
  boost::asio::post(pool_, [this, asked = std::move(request), answer = std::move(respond)] {
    http::Response response = ErrorResponse(500, "the question could not be answered");
    try {
      response = Answer(asked);
    } catch (const std::exception& failure) {
      spdlog::error("{}: given up, {}", asked.path, failure.what());
    }
    --waiting_;
    answer(std::move(response));
  });
}

void ForecastApi::Refresh() {
  if (refreshing_.exchange(true)) return;
  boost::asio::post(pool_, [this] {
    try {
      forecaster_.Fresh();
    } catch (const std::exception& failure) {
      spdlog::error("forecasts: given up, {}", failure.what());
    }
    refreshing_ = false;
  });
}

void ForecastApi::AddTo(Router& router) {
  const http::Handler ask = [this](http::Request request, http::Responder respond) {
    Ask(std::move(request), std::move(respond));
  };
  router.Add("GET", "/api/v1/forecast", ask);
  router.Add("GET", "/api/v1/forecast/", ask);
}

}  // namespace tranche
