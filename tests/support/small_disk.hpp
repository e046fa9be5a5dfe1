#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include <doctest/doctest.h>

#include "processes.hpp"

namespace support {

/// Checks that `body(make_read_only)` returns 0 in a process with an empty file system of `size`, such as "64k",
/// mounted at `disk`; `make_read_only()` makes it read-only. Does nothing if tests may not mount.
template <class Body>
void check_on_small_disk(const std::string& disk, const std::string& size, const Body& body) {
  constexpr int no_mount = 77;
  Processes child{1, [&](std::size_t) {
                    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
                        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                        mount("none", disk.c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0)
                      return no_mount;
                    return body([&] {
                      if (mount(nullptr, disk.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) _exit(no_mount);
                    });
                  }};
  const int status = child.wait()[0];
  if (status == no_mount)
    MESSAGE("no file system can be mounted here: the disk is not tried");
  else
    CHECK(status == 0);
}

}  // namespace support
