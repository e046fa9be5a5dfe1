// alone
// Workers with GPUs, one of which dies or stops while the GPUs of the others wait for it: each of the others reports it
// in time. The workers are processes of gpu_worker.cpp.
#include <doctest/doctest.h>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/nccl/api.hpp>
#include <dist/io/json.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "job.hpp"

namespace {

using namespace faults;
using namespace std::chrono_literals;

/// Checks that every worker except the victim reports an error of this type with these words within `longest` seconds,
/// and has no NCCL communicator after its strategy.
void check_survivors(Start start, const Plan& plan, std::string_view type, std::string_view words, double longest) {
  Job job{start, plan};
  std::vector<Job*> all{&job};
  CHECK(Job::finish(all) == 0);
  INFO(plan.policy, ", ", plan.replicas, " replicas, ", std::string{to_string(start)}, "\n", job.last_words(),
       job.output());
  CHECK(job.files_left() == "");
  const double fault = job.last(plan.victim, "fault").at;
  REQUIRE(fault != 0);
  std::set<std::string> devices;
  for (std::size_t rank = 0; rank < plan.ranks; ++rank) {
    for (const Said& one : job.said(rank))
      if (one.word == "device") CHECK(devices.insert(one.text).second);
    if (rank == plan.victim) continue;
    const Said error = job.last(rank, "error");
    CHECK(error.text.starts_with(type));
    CHECK(error.text.find(words) != std::string::npos);
    CHECK(error.at - fault < longest);
    CHECK(job.last(rank, "left").text == "0");
    CHECK(job.statuses()[rank] == 3);
  }
  CHECK(devices.size() == plan.ranks * plan.replicas);
}

}  // namespace

TEST_CASE("all others name a worker that is killed while their GPUs wait for it (spec A12, O01)") {
  for (const char* const policy : {"node", "flat"})
    check_survivors(Start::tf_config, {.policy = policy, .ranks = 3, .fault = "kill", .replicas = 2}, "Unavailable",
                    " is gone (", 5);
}

TEST_CASE("the waits of GPUs for a stopped worker end at the deadline") {
  check_survivors(Start::tf_config, {.policy = "node", .ranks = 2, .fault = "stop", .timeout_ms = 1500},
                  "DeadlineExceeded", "", 6);
}
