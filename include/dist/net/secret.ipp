#pragma once

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/io/file.hpp>
#include <dist/net/error.hpp>
#include <dist/net/secret.hpp>

namespace dist::net {

[[gnu::cold]] DIST_INLINE void warn_if_others_may_read(const std::string& path, std::string_view what) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    log_line(concat("other users may read ", what, " in ", path, "; remove their permission: chmod 600"));
}

DIST_INLINE std::string job_secret() {
  constexpr const char* how = "Use 32 random bytes in hexadecimal digits, for example from `openssl rand -hex 32`";
  std::string secret;
  if (const char* value = std::getenv("DIST_JOB_SECRET")) {
    secret = value;
    if (secret.empty()) throw InvalidArgument("DIST_JOB_SECRET is empty", "a secret must not be empty", how);
    return secret;
  }
  const char* path = std::getenv("DIST_JOB_SECRET_FILE");
  if (path == nullptr) return secret;
  const io::Descriptor file{open(path, O_RDONLY | O_CLOEXEC)};
  if (!file) throw FileError(path, "cannot be read", system_text(), "Check DIST_JOB_SECRET_FILE, which names it");
  warn_if_others_may_read(path, "the secret");
  char bytes[4096];
  const ssize_t size = read(file.get(), bytes, sizeof bytes);
  if (size < 0) throw FileError(path, "cannot be read", system_text(), "Check DIST_JOB_SECRET_FILE, which names it");
  if (size == sizeof bytes) throw FileError(path, "is too long for a secret", "4096 bytes or more", how);
  secret.assign(bytes, static_cast<std::size_t>(size));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) throw FileError(path, "holds no secret", "it is empty", how);
  return secret;
}

DIST_INLINE std::string random_secret() {
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw RendezvousError("The system does not provide random bytes", system_text(), "Check getrandom(2)");
  std::string digits;
  for (const unsigned char byte : bytes) (digits += "0123456789abcdef"[byte >> 4]) += "0123456789abcdef"[byte & 15];
  return digits;
}

DIST_INLINE std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
      throw RendezvousError("The system does not provide random bytes", system_text(), "Check getrandom(2)");
  return number;
}

}  // namespace dist::net
