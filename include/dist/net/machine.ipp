#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string>

#include <dist/core/text.hpp>
#include <dist/io/descriptor.hpp>
#include <dist/net/machine.hpp>

namespace dist::net {

DIST_INLINE std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

DIST_INLINE std::string machine_id() {
  const io::Descriptor file{open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)};
  char bytes[64];
  const ssize_t size = file ? read(file.get(), bytes, sizeof bytes) : 0;
  std::string id{bytes, static_cast<std::size_t>(size > 0 ? size : 0)};
  while (!id.empty() && id.back() == '\n') id.pop_back();
  for (const char* const shared : {"/proc/self/ns/pid", "/dev/shm"}) {
    struct stat identity {};
    if (!id.empty() && stat(shared, &identity) == 0) id += text('/', identity.st_dev, '.', identity.st_ino);
  }
  return id;
}

}  // namespace dist::net
