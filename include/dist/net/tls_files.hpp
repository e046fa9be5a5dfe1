#pragma once

#include <cstdlib>
#include <string>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist::net {

/// The PEM files with which a task authenticates itself over TLS, and verifies others. Every task of the job needs
/// them. Without them, connections are not encrypted.
struct TlsFiles {
  std::string authorities = {};  ///< certificates of all authorities that signed the tasks' certificates
  std::string certificate = {};  ///< of this task, followed by any intermediate certificates
  std::string key = {};          ///< the private key of that certificate, without a password
  /// The name in servers' certificates. Empty: the host of each server's address.
  std::string server_name = {};

  /// True if no file or name is given: TLS is not used.
  [[nodiscard]] bool empty() const noexcept {
    return authorities.empty() && certificate.empty() && key.empty() && server_name.empty();
  }
};

/// Throws InvalidArgument if only some of the files are given.
inline void validate(const TlsFiles& files) {
  if (files.empty()) return;
  const auto require = [](const std::string& file, const char* what, const char* variable) {
    if (file.empty())
      throw InvalidArgument(concat("TLS lacks the file of ", what), "other TLS options are set",
                            concat("Set the file, for example with ", variable, ", or set no TLS option at all"));
  };
  require(files.authorities, "authorities", "DIST_TLS_CA_FILE");
  require(files.certificate, "this task's certificate", "DIST_TLS_CERT_FILE");
  require(files.key, "this task's key", "DIST_TLS_KEY_FILE");
}

/// The files in DIST_TLS_CA_FILE, DIST_TLS_CERT_FILE and DIST_TLS_KEY_FILE, and the name in DIST_TLS_SERVER_NAME; empty
/// if none is set. Throws InvalidArgument for an empty variable, and like `validate`.
[[nodiscard]] inline TlsFiles job_tls() {
  const auto value_of = [](const char* variable) -> std::string {
    const char* const value = std::getenv(variable);
    if (value == nullptr) return {};
    if (*value == '\0')
      throw InvalidArgument(concat(variable, " is empty"), "a job that requests TLS must not run without it",
                            "Give the variable a value, or unset it");
    return value;
  };
  TlsFiles files{value_of("DIST_TLS_CA_FILE"), value_of("DIST_TLS_CERT_FILE"), value_of("DIST_TLS_KEY_FILE"),
                 value_of("DIST_TLS_SERVER_NAME")};
  validate(files);
  return files;
}

}  // namespace dist::net
