// A log that can be asked what a server has said in it.
//
// Thread rule: any thread.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <mutex>
#include <string>

namespace tranche::torture {

class LogLines : public spdlog::sinks::base_sink<std::mutex> {
 public:
  bool Contains(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return text_.find(text) != std::string::npos;
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    text_.clear();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_.append(message.payload.data(), message.payload.size()).push_back('\n');
  }
  void flush_() override {}

 private:
  std::string text_;
};

}  // namespace tranche::torture
