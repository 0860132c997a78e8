// Closes a file descriptor at the end of its scope.
#pragma once

#include <unistd.h>

namespace tranche::probe {

class FileHandle {
 public:
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  ~FileHandle() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

}  // namespace tranche::probe
