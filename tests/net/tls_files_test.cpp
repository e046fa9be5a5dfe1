#include <dist/net/tls_files.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "support/what_throws.hpp"

using dist::net::job_tls;
using dist::net::TlsFiles;

TEST_CASE("the files of TLS are read from the environment, all of them or none") {
  CHECK(job_tls().empty());
  setenv("DIST_TLS_CA_FILE", "ca.pem", 1);
  setenv("DIST_TLS_CERT_FILE", "task.pem", 1);
  CHECK(support::what_throws<dist::InvalidArgument>([] { static_cast<void>(job_tls()); }) ==
        "TLS lacks the file of this task's key (other TLS options are set). Set the file, for example with "
        "DIST_TLS_KEY_FILE, or set no TLS option at all.");
  setenv("DIST_TLS_KEY_FILE", "task.key", 1);
  setenv("DIST_TLS_SERVER_NAME", "job.example", 1);
  const TlsFiles files = job_tls();
  CHECK_FALSE(files.empty());
  CHECK(files.authorities == "ca.pem");
  CHECK(files.certificate == "task.pem");
  CHECK(files.key == "task.key");
  CHECK(files.server_name == "job.example");
  for (const char* const variable :
       {"DIST_TLS_CA_FILE", "DIST_TLS_CERT_FILE", "DIST_TLS_KEY_FILE", "DIST_TLS_SERVER_NAME"})
    unsetenv(variable);
}

TEST_CASE("an empty TLS variable is an error instead of disabling encryption") {
  setenv("DIST_TLS_CA_FILE", "", 1);
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          static_cast<void>(job_tls());
        }).starts_with("DIST_TLS_CA_FILE is empty"));
  unsetenv("DIST_TLS_CA_FILE");
}

TEST_CASE("each missing file is named") {
  const auto lacks = [](const TlsFiles& files) {
    return support::what_throws<dist::InvalidArgument>([&] { validate(files); });
  };
  CHECK(lacks({.certificate = "c", .key = "k"}).find("DIST_TLS_CA_FILE") != std::string::npos);
  CHECK(lacks({.authorities = "a", .key = "k"}).find("DIST_TLS_CERT_FILE") != std::string::npos);
  CHECK(lacks({.server_name = "n"}).find("DIST_TLS_CA_FILE") != std::string::npos);
  CHECK_NOTHROW(validate(TlsFiles{"a", "c", "k"}));
}
