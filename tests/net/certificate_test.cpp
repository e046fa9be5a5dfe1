#include <dist/net/certificate.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <string>

#include "support/certificates.hpp"
#include "support/stderr_of.hpp"
#include "support/what_throws.hpp"

namespace {

using dist::net::read_identity;
using dist::net::TlsFiles;
using dist::net::TlsRole;

const support::TemporaryFolder folder;
const support::Authority authority{folder, "authority"}, foreign{folder, "foreign"};

/// Returns the error for a task with these files.
std::string said(const TlsFiles& files, TlsRole role = TlsRole::server) {
  return support::what_throws<dist::FileError>([&] { static_cast<void>(read_identity(files, role)); });
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the files of a task are read, including intermediate certificates") {
  TlsFiles files = authority.task("worker 0");
  const auto identity = read_identity(files, TlsRole::server);
  CHECK(identity.authorities == folder.read("authority.pem"));
  CHECK(identity.certificate == folder.read("worker 0.pem"));
  CHECK(identity.key == folder.read("worker 0.key"));
  CHECK_NOTHROW(static_cast<void>(read_identity(files, TlsRole::client)));
  files.authorities =
      folder.write("both.pem", folder.read("foreign.pem") + "\nof the job:\n" + folder.read("authority.pem"));
  files.certificate = folder.write("chain.pem", folder.read("worker 0.pem") + folder.read("authority.pem"));
  CHECK_NOTHROW(static_cast<void>(read_identity(files, TlsRole::server)));
}

TEST_CASE("errors for missing or non-PEM files name the file") {
  const TlsFiles good = authority.task("worker 1");
  const std::string missing = folder.path("missing.pem"), junk = folder.write("junk.pem", "no PEM");
  for (std::string TlsFiles::*file : {&TlsFiles::authorities, &TlsFiles::certificate, &TlsFiles::key}) {
    TlsFiles files = good;
    files.*file = missing;
    CHECK(contains(said(files), missing));
    CHECK(contains(said(files), "No such file"));
    files.*file = junk;
    CHECK(contains(said(files), junk));
    CHECK(contains(said(files), file == &TlsFiles::key ? "holds no readable private key" : "holds no certificate"));
  }
  std::string cut = folder.read("worker 1.pem");
  cut.resize(cut.size() - 100);
  TlsFiles files = good;
  files.certificate = folder.write("cut.pem", folder.read("worker 1.pem") + cut);
  CHECK(contains(said(files), "holds something that is not a certificate"));
  files.certificate = folder.write("long.pem", std::string(2 << 20, '-'));
  CHECK(contains(said(files), "too long"));
}

TEST_CASE("a certificate that peers would reject is refused, with the reason and its validity") {
  CHECK(contains(said(authority.task("old", {.from = -7200, .to = -3600})),
                 "certificate has expired: CN=old, valid from "));
  CHECK(contains(said(authority.task("early", {.from = 3600, .to = 7200})), "certificate is not yet valid: CN=early"));
  TlsFiles stranger = foreign.task("stranger");
  stranger.authorities = authority.file;
  CHECK(
      contains(said(stranger), folder.path("stranger.pem") + "' holds a certificate that all tasks of the job reject"));
  CHECK(contains(said(stranger), "unable to get local issuer certificate: CN=stranger"));
  const TlsFiles calls = authority.task("calls", {.usage = "clientAuth"});
  CHECK(contains(said(calls), "unsuitable certificate purpose"));
  CHECK_NOTHROW(static_cast<void>(read_identity(calls, TlsRole::client)));
}

TEST_CASE("a key that does not match or has a password is refused, and one that others can read causes a warning") {
  TlsFiles files = authority.task("worker 2");
  const std::string own = files.key;
  files.key = authority.task("worker 3").key;
  CHECK(contains(said(files), "holds the key of another certificate"));
  files.key =
      folder.write("locked.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n");
  CHECK(contains(said(files), "a password protects it"));
  files.key = own;
  const auto warning = [&] {
    return testing::stderr_of([&] { static_cast<void>(read_identity(files, TlsRole::client)); }).stderr_text;
  };
  CHECK(warning() == "");
  chmod(own.c_str(), S_IRUSR | S_IRGRP);
  CHECK(warning() == "dist: other users may read the key in " + own + "; remove their permission: chmod 600\n");
}
