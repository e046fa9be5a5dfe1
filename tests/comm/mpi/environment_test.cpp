// Each case runs in its own process, because MPI starts only once per process.
#include <dist/comm/mpi/environment.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>

#include <support/processes.hpp>

namespace {

using dist::mpi::Environment;
using dist::mpi::ThreadLevel;
using dist::mpi::to_string;

/// Returns the result of `body()` in a new process, in which MPI has a world of one.
template <class Body>
bool holds(Body&& body) {
  return support::Processes(1, [&](std::size_t) { return body() ? 0 : 1; }).wait()[0] == 0;
}

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const dist::InvalidArgument& error) {
    return error.what();
  }
  return "";
}

bool is_finalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

bool says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  std::fprintf(stderr, "'%s' lacks '%s'\n", text.c_str(), part.c_str());
  return false;
}

}  // namespace

TEST_CASE("Environment initialises and finalises MPI") {
  CHECK(holds([] {
    bool good = !dist::mpi::is_running();
    {
      const Environment environment;
      good = good && environment.owns_mpi() && dist::mpi::is_running() && !is_finalized() &&
             environment.provided() >= ThreadLevel::funneled;
    }
    return good && is_finalized() && !dist::mpi::is_running();
  }));
}

TEST_CASE("Environment leaves MPI to a program that initialised it") {
  CHECK(holds([] {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    bool good = true;
    {
      const Environment environment{ThreadLevel::multiple};
      good = !environment.owns_mpi() && static_cast<int>(environment.provided()) == provided;
    }
    good = good && !is_finalized();
    MPI_Finalize();
    return good;
  }));
}

TEST_CASE("the first of two environments in a program finalises MPI") {
  CHECK(holds([] {
    bool good = true;
    {
      const Environment outer;
      { const Environment inner; }
      good = !is_finalized();
    }
    return good && is_finalized();
  }));
}

TEST_CASE("MPI calls before its start or after its end throw") {
  CHECK(holds([] {
    bool good = says(refusal([] { dist::mpi::require_running(); }), "MPI was not initialised in this process");
    { const Environment environment; }
    good = good && says(refusal([] { dist::mpi::require_running(); }), "MPI was finalised in this process");
    return good && says(refusal([] { const Environment again; }), "MPI was finalised in this process");
  }));
}

TEST_CASE("a broken job is not finalised, because that would never end") {
  CHECK(holds([] {
    {
      Environment environment;
      environment.abandon();
    }
    return !is_finalized();
  }));
  CHECK(holds([] {
    try {
      const Environment environment;
      throw std::runtime_error("the disk is full");
    } catch (const std::runtime_error&) {
      return !is_finalized();
    }
    return false;
  }));
}

TEST_CASE("only threads allowed by the level may call MPI") {
  CHECK(holds([] {
    const Environment environment{ThreadLevel::funneled};
    const dist::mpi::ThreadPermit permit;
    if (permit.level() != environment.provided()) return false;
    permit.require("a barrier");
    const bool one_thread = permit.level() < ThreadLevel::serialized;
    bool good = true;
    std::thread other([&] {
      const std::string refused = refusal([&] { permit.require("a barrier"); });
      good = one_thread ? says(refused,
                               "MPI was called from a thread that must not call it (a barrier in a thread that did not "
                               "initialise MPI, whose thread level is MPI_THREAD_FUNNELED). Call from the thread")
                        : refused.empty();
      if (one_thread)
        good = good && says(refusal([] { const dist::mpi::ThreadPermit late; }), "an object that calls MPI");
    });
    other.join();
    return good;
  }));
  CHECK(holds([] {
    const Environment environment{ThreadLevel::multiple};
    if (environment.provided() < ThreadLevel::serialized) return true;
    const dist::mpi::ThreadPermit permit;
    bool good = false;
    std::thread other([&] { good = refusal([&] { permit.require("a barrier"); }).empty(); });
    other.join();
    return good;
  }));
}

TEST_CASE("levels have the names of MPI's constants") {
  CHECK(to_string(ThreadLevel::single) == "MPI_THREAD_SINGLE");
  CHECK(to_string(ThreadLevel::funneled) == "MPI_THREAD_FUNNELED");
  CHECK(to_string(ThreadLevel::serialized) == "MPI_THREAD_SERIALIZED");
  CHECK(to_string(ThreadLevel::multiple) == "MPI_THREAD_MULTIPLE");
}
