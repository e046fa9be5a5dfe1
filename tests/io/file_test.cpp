#include <dist/io/file.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <utility>

using dist::io::Descriptor;

namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

}  // namespace

TEST_CASE("a descriptor is closed once, by its last owner") {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    Descriptor first{file};
    Descriptor second = std::move(first);
    CHECK_FALSE(static_cast<bool>(first));
    CHECK(second.get() == file);
    CHECK(is_open(file));
    first = std::move(second);
    CHECK(is_open(file));
  }
  CHECK_FALSE(is_open(file));
}

TEST_CASE("a released descriptor stays open, a replaced one is closed") {
  const int one = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int two = open("/dev/null", O_RDONLY | O_CLOEXEC);
  Descriptor owner{one};
  owner.reset(two);
  CHECK_FALSE(is_open(one));
  CHECK(owner.release() == two);
  CHECK_FALSE(static_cast<bool>(owner));
  CHECK(is_open(two));
  close(two);
}
