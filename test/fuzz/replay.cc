// Runs a fuzz target where there is no libFuzzer: over every file of a folder and every prefix of
// each, and then, when told for how long, over random changes of them.
//
//   NAME_fuzz FOLDER [SECONDS [SEED]]
//
// The seed is printed; equal seeds give equal inputs in equal order.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kLargest = 64 * 1024;
constexpr std::array<std::string_view, 20> kWords = {"",
                                                     "0",
                                                     "-1",
                                                     "18446744073709551616",
                                                     "9223372036854775807",
                                                     "1e400",
                                                     "{",
                                                     "}",
                                                     "[[[[",
                                                     "\"",
                                                     "\\u0000",
                                                     "\xc3\x28",
                                                     "\r\n",
                                                     "null",
                                                     ":",
                                                     ",",
                                                     ";",
                                                     "Infinity",
                                                     "\x7f",
                                                     "1.5"};

void Run(const std::string& text) {
  // A copy of its own size, so that a read behind the end is seen.
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Changer {
 public:
  Changer(std::vector<std::string> texts, uint64_t seed)
      : texts_(std::move(texts)), random_(seed) {}

  std::string Next() {
    std::string text = texts_[Below(texts_.size())];
    for (std::size_t changes = 1 + Below(6); changes > 0; --changes) Change(text);
    if (text.size() > kLargest) text.resize(kLargest);
    return text;
  }

 private:
  std::size_t Below(std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit);
  }
  // A part of a text that is at most 64 bytes long.
  std::string_view Part(const std::string& text) {
    const std::size_t begin = Below(text.size() + 1);
    return std::string_view(text).substr(begin, Below(64));
  }

  void Change(std::string& text) {
    const std::size_t at = Below(text.size() + 1);
    switch (Below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(Below(256));
        break;
      case 1:
        text.erase(at, Below(16));
        break;
      case 2:
        text.insert(at, std::string(Part(text)));
        break;
      case 3:
        text.insert(at, Part(texts_[Below(texts_.size())]));
        break;
      case 4:
        text.replace(at, Below(8), kWords[Below(kWords.size())]);
        break;
      case 5:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
        break;
    }
  }

  const std::vector<std::string> texts_;
  std::mt19937_64 random_;
};

std::optional<uint64_t> Number(const char* text) {
  uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<uint64_t> seconds = argc > 2 ? Number(argv[2]) : 0;
  const std::optional<uint64_t> seed = argc > 3 ? Number(argv[3]) : std::random_device{}();
  if (argc < 2 || argc > 4 || !seconds || !seed) {
    std::fprintf(stderr, "expected FOLDER [SECONDS [SEED]], found %d arguments\n", argc - 1);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (std::size_t size = 0; size <= texts.back().size(); ++size) {
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(texts.back().data()), size);
    }
  }
  std::printf("%zu files, seed %llu\n", texts.size(), static_cast<unsigned long long>(*seed));
  std::fflush(stdout);
  if (texts.empty()) return 1;
  Changer changer(std::move(texts), *seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(*seconds);
  uint64_t inputs = 0;
  while (std::chrono::steady_clock::now() < end) {
    Run(changer.Next());
    ++inputs;
  }
  std::printf("%llu changed inputs\n", static_cast<unsigned long long>(inputs));
  return 0;
}
