#pragma once

#include <cstdlib>
#include <string>

#include <dist/core/error.hpp>

namespace dist::net {

/// The files, in PEM, with which a task proves by TLS who it is, and believes others: every task of the job has them, those that
/// call as well as those that serve. Without any, connections are not encrypted.
struct TlsFiles {
  std::string authorities = {};  ///< certificates of the authorities that have signed those of all tasks of the job
  std::string certificate =
      {};                ///< of this task, and after it those that lead from it to an authority, if there are any
  std::string key = {};  ///< the private key of that certificate, without a password
  /// The name that certificates of servers have; empty: each has the host of its own address in the list of tasks.
  std::string server_name = {};

  [[nodiscard]] bool empty() const noexcept {
    return authorities.empty() && certificate.empty() && key.empty() && server_name.empty();
  }
};

/// Throws InvalidArgument where some of the files are named and others are not.
inline void validate(const TlsFiles& files) {
  if (files.empty()) return;
  const auto require = [](const std::string& file, const char* what, const char* variable) {
    if (file.empty())
      throw InvalidArgument(concat("TLS lacks the file of ", what), "the job has other options for TLS",
                            concat("Name the file, as ", variable, " does, or give no option for TLS at all"));
  };
  require(files.authorities, "authorities", "DIST_TLS_CA_FILE");
  require(files.certificate, "this task's certificate", "DIST_TLS_CERT_FILE");
  require(files.key, "this task's key", "DIST_TLS_KEY_FILE");
}

/// Those that DIST_TLS_CA_FILE, DIST_TLS_CERT_FILE and DIST_TLS_KEY_FILE name, and the name in DIST_TLS_SERVER_NAME; none where
/// none of these variables is set. Throws InvalidArgument for a variable that is set and empty, and as `validate` does.
[[nodiscard]] inline TlsFiles job_tls() {
  const auto value_of = [](const char* variable) -> std::string {
    const char* const value = std::getenv(variable);
    if (value == nullptr) return {};
    if (*value == '\0')
      throw InvalidArgument(concat(variable, " is empty"), "a job that asks for TLS must not run without it",
                            "Give the variable a value, or unset it");
    return value;
  };
  TlsFiles files{value_of("DIST_TLS_CA_FILE"), value_of("DIST_TLS_CERT_FILE"), value_of("DIST_TLS_KEY_FILE"),
                 value_of("DIST_TLS_SERVER_NAME")};
  validate(files);
  return files;
}

}  // namespace dist::net
