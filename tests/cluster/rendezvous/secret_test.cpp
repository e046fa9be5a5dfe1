#include <dist/cluster/rendezvous/secret.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

using dist::rendezvous::job_secret;

namespace {

/// A file with a content, for the time of a test; DIST_JOB_SECRET_FILE names it.
class SecretFile {
 public:
  explicit SecretFile(const std::string& content) {
    const int file = mkstemp(path_);
    CHECK(write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
    close(file);
    unsetenv("DIST_JOB_SECRET");
    setenv("DIST_JOB_SECRET_FILE", path_, 1);
  }
  ~SecretFile() {
    unlink(path_);
    unsetenv("DIST_JOB_SECRET_FILE");
  }

 private:
  char path_[32] = "/tmp/dist-secret-XXXXXX";
};

}  // namespace

TEST_CASE("the secret comes from the environment, else from a file, else there is none") {
  unsetenv("DIST_JOB_SECRET");
  CHECK(job_secret() == "");
  {
    const SecretFile file{"0123456789abcdef\n"};
    CHECK(job_secret() == "0123456789abcdef");
    setenv("DIST_JOB_SECRET", "of the environment", 1);
    CHECK(job_secret() == "of the environment");
    setenv("DIST_JOB_SECRET", "", 1);
    CHECK_THROWS_AS(static_cast<void>(job_secret()), dist::InvalidArgument);
  }
  unsetenv("DIST_JOB_SECRET");
}

TEST_CASE("a file without a secret is an error that names the file") {
  {
    const SecretFile file{"\n"};
    CHECK_THROWS_AS(static_cast<void>(job_secret()), dist::FileError);
  }
  {
    const SecretFile file{std::string(5000, 'x')};
    CHECK_THROWS_AS(static_cast<void>(job_secret()), dist::FileError);
  }
  setenv("DIST_JOB_SECRET_FILE", "/no/such/file", 1);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(job_secret()),
      "File '/no/such/file' cannot be read (No such file or directory). DIST_JOB_SECRET_FILE names it; "
      "check that.",
      dist::FileError);
  unsetenv("DIST_JOB_SECRET_FILE");
}
