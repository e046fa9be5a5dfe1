#pragma once

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string>

#include <dist/cluster/rendezvous/descriptor.hpp>

namespace dist::rendezvous {

/// What this machine calls itself.
[[nodiscard]] inline std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

/// Equal only for processes of one start of one machine: the kernel's boot id. Empty where there is none.
[[nodiscard]] inline std::string machine_id() {
  const Descriptor file{open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)};
  char bytes[64];
  const ssize_t size = file ? read(file.get(), bytes, sizeof bytes) : 0;
  std::string id{bytes, static_cast<std::size_t>(size > 0 ? size : 0)};
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace dist::rendezvous
