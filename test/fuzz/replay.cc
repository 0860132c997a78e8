// Runs a fuzz target over the files of a folder, and over every prefix of each: the kept corpus as
// an ordinary test, where there is no libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "expected one folder, found %d arguments\n", argc - 1);
    return 2;
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::size_t size = 0; size <= text.size(); ++size) {
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), size);
    }
    ++files;
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
