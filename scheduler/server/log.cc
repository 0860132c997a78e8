#include "scheduler/server/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <memory>

namespace tranche {

void LogToStderr(const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("tranche",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void Guarded(std::string_view name, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& failure) {
    spdlog::error("{}: given up, {}", name, failure.what());
  }
}

}  // namespace tranche
