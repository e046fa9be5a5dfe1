#include <dist/net/secret.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <support/stderr_of.hpp>

using dist::net::job_secret;

namespace {

/// A temporary file with the given content, named by DIST_JOB_SECRET_FILE.
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

TEST_CASE("the secret is read from the environment, else from a file, else empty") {
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

TEST_CASE("a file that other users can read causes a one-line warning without the secret") {
  const SecretFile file{"0123456789abcdef\n"};
  const std::string path = std::getenv("DIST_JOB_SECRET_FILE");
  const auto warning = [&](mode_t mode) {
    chmod(path.c_str(), mode);
    return testing::stderr_of([] { static_cast<void>(job_secret()); }).stderr_text;
  };
  for (const mode_t closed : {0600U, 0400U}) CHECK(warning(closed) == "");
  for (const mode_t open : {0640U, 0604U, 0644U})
    CHECK(warning(open) ==
          "dist: other users may read the secret in " + path + "; remove their permission: chmod 600\n");
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
      "File '/no/such/file' cannot be read (No such file or directory). Check DIST_JOB_SECRET_FILE, which names it.",
      dist::FileError);
  unsetenv("DIST_JOB_SECRET_FILE");
}
