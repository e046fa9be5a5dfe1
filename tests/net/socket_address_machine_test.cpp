#include <dist/net/socket_address.hpp>

#include <doctest/doctest.h>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

using dist::net::machine_id;

namespace {

/// Compares the machine id with its value in a child that first calls `isolate`: "equal", "differs" or "not allowed".
template <class Isolate>
std::string compare_in_child(Isolate isolate) {
  const std::string mine = machine_id();
  const pid_t child = fork();
  if (child == 0) {
    if (!isolate()) _exit(2);
    const pid_t inner = fork();  // a new PID namespace applies to children
    if (inner == 0) _exit(machine_id() == mine ? 0 : 1);
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 0 ? "equal" : WEXITSTATUS(status) == 1 ? "differs" : "not allowed";
}

}  // namespace

TEST_CASE("a machine has a name and an id, the same for all its processes") {
  char name[256];
  REQUIRE(gethostname(name, sizeof name) == 0);
  CHECK(dist::net::host_name() == name);
  const std::string id = machine_id();
  CHECK(id.find('/') == 36);  // after a UUID, RFC 4122
  CHECK(id == machine_id());
  CHECK(compare_in_child([] { return true; }) == "equal");
}

TEST_CASE("a container with its own PID namespace is another machine") {
  const std::string found = compare_in_child([] { return unshare(CLONE_NEWPID) == 0; });
  if (found == "not allowed") {
    MESSAGE("skipped: this process may not make a space of process numbers");
    return;
  }
  CHECK(found == "differs");
}
