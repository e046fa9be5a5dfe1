// Instructions for a worker of a Job (job.hpp), and its exit status.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/multi_worker.hpp>
#include <dist/net/error.hpp>
#include <support/throw_cause_of.hpp>

#include "log.hpp"

namespace faults {

struct WorkerPlan {
  std::string_view policy;  ///< "flat": without the memory of the node, "node": with it
  std::size_t replicas;
  std::string_view fault;
  std::size_t victim;
  std::chrono::milliseconds timeout;  ///< of collectives; 0: the default
  std::chrono::milliseconds start;    ///< of the start
  std::size_t rank;

  [[nodiscard]] bool is_victim() const { return rank == victim; }

  [[nodiscard]] dist::MultiWorkerOptions options() const {
    dist::MultiWorkerOptions options;
    options.replicas = replicas;
    options.pinned = false;  // the test has more processes than processors
    if (policy == "flat") options.hierarchical = false;
    if (policy == "node") options.hierarchical = true;
    options.start_timeout = start;
    if (timeout.count() != 0) options.communication.timeout = timeout;
    return options;
  }
};

/// Reads the plan from the arguments and the environment, and opens the log. If something is missing, prints the usage
/// on stderr and returns nothing.
inline std::optional<WorkerPlan> plan_of(int argc, char** argv) {
  const char* const path = std::getenv("DIST_FAULTS_LOG");
  const char* rank = nullptr;
  for (const char* const name : {"DIST_FAULTS_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (rank == nullptr) rank = std::getenv(name);
  if (argc != 7 || path == nullptr || rank == nullptr) {
    std::fprintf(stderr,
                 "usage: DIST_FAULTS_LOG=PATH DIST_FAULTS_RANK=N %s POLICY REPLICAS FAULT VICTIM TIMEOUT START\n",
                 argv[0]);
    return std::nullopt;
  }
  const WorkerPlan plan{argv[1],
                        std::stoul(argv[2]),
                        argv[3],
                        std::stoul(argv[4]),
                        std::chrono::milliseconds{std::stol(argv[5])},
                        std::chrono::milliseconds{std::stol(argv[6])},
                        std::stoul(rank)};
  Log::open(path, plan.rank);
  return plan;
}

/// Calls `body()`, and returns the exit status: 0; 3 after a dist::Error; 4 after another exception. Logs "done", or
/// "error" with the type and the text, and then calls `after_error()`.
template <class Body, class AfterError>
int run(const WorkerPlan& plan, Body&& body, AfterError&& after_error) {
  const auto say = [&](const char* type, const char* what, int status = 3) {
    Log::write("error", dist::concat(type, ": ", what).c_str());
    std::fprintf(stderr, "rank %zu: %s: %s\n", plan.rank, type, what);
    after_error();
    return status;
  };
  try {
    support::throw_cause_of(std::forward<Body>(body));
    Log::write("done");
    return 0;
  } catch (const dist::Unavailable& error) {
    return say("Unavailable", error.what());
  } catch (const dist::DeadlineExceeded& error) {
    return say("DeadlineExceeded", error.what());
  } catch (const dist::PeerError& error) {
    return say("PeerError", error.what());
  } catch (const dist::CollectiveMismatch& error) {
    return say("CollectiveMismatch", error.what());
  } catch (const dist::InvalidArgument& error) {
    return say("InvalidArgument", error.what());
  } catch (const dist::RendezvousError& error) {
    return say("RendezvousError", error.what());
  } catch (const dist::Error& error) {
    return say("Error", error.what());
  } catch (const std::exception& error) {
    return say("exception", error.what(), 4);
  }
}

}  // namespace faults
