// Books are made anew when what they hang on changes.
#include "scheduler/dra/catalog.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

// The pool lacks a slice of the node, and one of another node makes it old.
TEST(Catalog, APoolComesBackWhenItsNewerSlicesGo) {
  Slice old = NodeSlice("n1", {GpuDevice("gpu-0", "GPU-a", "NVIDIA L4", 1000)});
  old.slice_count = 2;
  Slice other = old;
  other.name = "other";
  other.node.name = NodeName("n2");
  Slice newer = other;
  newer.name = "newer";
  newer.generation = 2;
  Catalog catalog;
  catalog.PutSlice(old);
  catalog.PutSlice(other);
  catalog.PutSlice(newer);
  EXPECT_TRUE(catalog.BooksOn({"n1"}).devices.empty());
  catalog.RemoveSlice("newer");
  EXPECT_EQ(catalog.BooksOn({"n1"}).devices.size(), 1U);
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
