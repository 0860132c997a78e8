// The loaded library, for the sources of Nvml. Thread rule and errors as there.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "scheduler/probe/nvml.h"
#include "scheduler/probe/nvml_abi.h"

namespace tranche::probe {

// Functions are looked up by name where they are called.
class Nvml::Library {
 public:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Calls `name`, which takes exactly Args.
  template <typename... Args>
  absl::Status Call(const char* name, std::type_identity_t<Args>... args) {
    const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(handle_, name));
    if (function == nullptr) {
      return absl::FailedPreconditionError(fmt::format(
          "expected the function {} in {}, found none: the driver is too old", name, path_));
    }
    return Judge(name, function(args...));
  }

 private:
  absl::Status Judge(const char* name, int code) {
    if (code == abi::kSuccess) return absl::OkStatus();
    const auto words = reinterpret_cast<const char* (*)(int)>(dlsym(handle_, "nvmlErrorString"));
    const std::string text = fmt::format("{}: expected success, found {} ({})", name,
                                         words == nullptr ? "an error" : words(code), code);
    switch (code) {
      case abi::kInvalidArgument:
        return absl::InvalidArgumentError(text);
      case abi::kNotSupported:
        return absl::UnimplementedError(text);
      case abi::kNoPermission:
        return absl::PermissionDeniedError(text);
      case abi::kNotFound:
        return absl::OutOfRangeError(text);
      case abi::kTimeout:
        return absl::DeadlineExceededError(text);
      default:
        return absl::UnavailableError(text);
    }
  }

  void* const handle_;
  const std::string path_;
};

}  // namespace tranche::probe
