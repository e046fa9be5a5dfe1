#pragma once

#include <fcntl.h>
#include <ifaddrs.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string>

#include <dist/core/text.hpp>
#include <dist/io/file.hpp>
#include <dist/net/machine.hpp>
#include <dist/net/socket_address.hpp>

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
  for (const char* const shared : {"/proc/self/ns/pid", "/proc/self/ns/net", "/dev/shm"}) {
    struct stat identity {};
    if (!id.empty() && stat(shared, &identity) == 0) id += concat('/', identity.st_dev, '.', identity.st_ino);
  }
  return id;
}

DIST_INLINE std::string interface_of(const SocketAddress& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::string name;
  for (const ifaddrs* each = all; each != nullptr && name.empty(); each = each->ifa_next)
    if (each->ifa_addr != nullptr && address.has_host_of(*each->ifa_addr)) name = each->ifa_name;
  freeifaddrs(all);
  return name;
}

}  // namespace dist::net
