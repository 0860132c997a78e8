// A small CUDA program, for tests on a machine with an NVIDIA card; the driver's library is loaded
// at run time. What it prints is one line for each thing seen.
//
//   card_program see          the GPUs that it is shown: UUID, multiprocessors, MiB
//   card_program take MIB     asks for that much memory: "given", "refused: CODE"; ends on the next
//                             line of its input, so that it can be looked at meanwhile
//   card_program fault        writes where it may not: "fault: CODE"
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

using Context = void*;
using Address = unsigned long long;

constexpr int kMultiprocessors = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT

// One thread writes to an address that nothing is mapped at.
constexpr const char* kFaultyKernel =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fault() {\n"
    "  .reg .b64 %a;\n  .reg .b32 %v;\n"
    "  mov.u64 %a, 1152921504606846976;\n  mov.u32 %v, 7;\n"
    "  st.global.u32 [%a], %v;\n  ret;\n}\n";

void* Driver() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::cout << "no driver: " << dlerror() << '\n';
    std::exit(3);
  }
  return library;
}

template <typename... Arguments>
int Try(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(Driver(), name));
  if (function == nullptr) {
    std::cout << "no function " << name << '\n';
    std::exit(3);
  }
  return function(arguments...);
}

template <typename... Arguments>
void Must(const char* name, Arguments... arguments) {
  const int code = Try(name, arguments...);
  if (code == 0) return;
  std::cout << name << ": " << code << '\n';
  std::exit(1);
}

std::string UuidOf(int device) {
  std::array<unsigned char, 16> bytes{};
  Must("cuDeviceGetUuid_v2", bytes.data(), device);
  std::string text = "GPU";
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at == 0 || at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[bytes[at] >> 4U];
    text += kDigits[bytes[at] & 15U];
  }
  return text;
}

void See() {
  int count = 0;
  Must("cuDeviceGetCount", &count);
  for (int device = 0; device < count; ++device) {
    int multiprocessors = 0;
    std::size_t bytes = 0;
    Must("cuDeviceGetAttribute", &multiprocessors, kMultiprocessors, device);
    Must("cuDeviceTotalMem_v2", &bytes, device);
    std::cout << UuidOf(device) << ' ' << multiprocessors << ' ' << (bytes >> 20U) << '\n';
  }
}

void Open() {
  Context context = nullptr;
  Must("cuCtxCreate_v2", &context, 0U, 0);
}

void Take(std::size_t mib) {
  Open();
  Address address = 0;
  const int code = Try("cuMemAlloc_v2", &address, mib << 20U);
  if (code == 0) {
    std::cout << "given" << std::endl;
  } else {
    std::cout << "refused: " << code << std::endl;
  }
  std::string line;
  std::getline(std::cin, line);
}

void Fault() {
  Open();
  void* module = nullptr;
  void* kernel = nullptr;
  Must("cuModuleLoadData", &module, static_cast<const void*>(kFaultyKernel));
  Must("cuModuleGetFunction", &kernel, module, "fault");
  Must("cuLaunchKernel", kernel, 1U, 1U, 1U, 1U, 1U, 1U, 0U, static_cast<void*>(nullptr),
       static_cast<void**>(nullptr), static_cast<void**>(nullptr));
  std::cout << "fault: " << Try("cuCtxSynchronize") << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  Must("cuInit", 0U);
  if (what == "see") {
    See();
  } else if (what == "take" && count > 2) {
    Take(std::stoul(arguments[2]));
  } else if (what == "fault") {
    Fault();
  } else {
    std::cout << "expected see, take MIB or fault, found '" << what << "'\n";
    return 2;
  }
  return 0;
}
