// alone
// The workers of a MultiWorker when one of them fails: each reports it and ends soon, and nothing is left over. They
// are processes of another program (worker.cpp), started by mpirun or with TF_CONFIG alone.
#include <doctest/doctest.h>
#include <dist/comm/mpi/api.hpp>
#include <dist/io/json.hpp>

#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "job.hpp"

namespace {

using namespace faults;
using support::has_mpich;
using namespace std::chrono_literals;

/// The start of the workers of a job, and their fault.
struct Case {
  Start start;
  Plan plan;
};

std::string describe(const Job& job) {
  return job.plan().fault + ": " + std::to_string(job.plan().ranks) + " workers, " + job.plan().policy + ", " +
         std::to_string(job.plan().replicas) + " replicas, " + std::string{to_string(job.start())};
}

/// Runs the jobs, a few at a time because most of them wait, calls `check(job)` for each, and checks that nothing is
/// left.
template <class Check>
void run(std::vector<Case> cases, Check&& check) {
  // Only Open MPI starts a world from TF_CONFIG alone.
  if (has_mpich) std::erase_if(cases, [](const Case& each) { return each.start == Start::tf_config; });
  constexpr std::size_t at_a_time = 4;
  for (std::size_t first = 0; first < cases.size(); first += at_a_time) {
    std::vector<std::unique_ptr<Job>> jobs;
    std::vector<Job*> all;
    for (std::size_t i = first; i < std::min(first + at_a_time, cases.size()); ++i)
      all.push_back(jobs.emplace_back(std::make_unique<Job>(cases[i].start, cases[i].plan)).get());
    CHECK(Job::finish(all) == 0);
    for (const Job* const job : all) {
      INFO(describe(*job), "\n", job->last_words(), job->output());
      for (const int status : job->statuses()) CHECK(status != Job::running);
      // If it must keep the others, mpirun 4.1 does not end after a rank was killed, and leaves its own files when it
      // is ended.
      if (job->start() != Start::mpirun_keeping) CHECK(job->files_left() == "");
      check(*job);
    }
  }
}

/// Checks that every worker except the victim reported this error with these parts, and failed. One is enough if mpirun
/// ends all after the first failure, which it always does after an exit without MPI_Finalize. With `first`, workers
/// wait until the same deadline, and only one must report this error.
void check_survivors(const Job& job, std::string_view type, std::initializer_list<std::string_view> parts,
                     bool first = false) {
  const double fault = job.last(job.plan().victim, "fault").at;
  REQUIRE(fault != 0);
  double longest = 0;
  std::size_t right = 0;
  const bool mpirun_ends_all =
      job.start() == Start::mpirun ||
      (job.start() == Start::mpirun_keeping && (job.plan().fault == "leave" || job.plan().fault == "exit"));
  for (std::size_t rank = 0; rank < job.plan().ranks; ++rank) {
    if (rank == job.plan().victim) continue;
    const Said error = job.last(rank, "error");
    if (error.at == 0 && mpirun_ends_all) continue;
    bool has_all = error.text.starts_with(type);
    for (const std::string_view part : parts) has_all = has_all && error.text.find(part) != std::string::npos;
    if (has_all) ++right;
    CAPTURE(error.text);
    CHECK((first || has_all));
    if (job.start() == Start::tf_config) CHECK(job.statuses()[rank] == 3);
    longest = std::max(longest, error.at - fault);
  }
  // The mpirun of Open MPI 5 may end the survivors before they can write, and names the victim itself.
  const bool mpirun_names_victim =
      job.start() == Start::mpirun &&
      job.output().find("process rank " + std::to_string(job.plan().victim) + " with PID") != std::string::npos;
  CHECK((right > 0 || mpirun_names_victim));
  if (job.start() == Start::mpirun) CHECK(job.statuses()[0] != 0);
  std::printf("%-90s %.3f s\n", describe(job).c_str(), longest);
}

/// Checks workers that cannot be interrupted, in a call of MPI or at their end: they print these parts, and the first
/// exits with `status`. Others may notice its exit first, and exit with 70.
void check_ended_survivors(const Job& job, std::initializer_list<std::string_view> parts, int status = 70) {
  const double fault = job.last(job.plan().victim, "fault").at;
  REQUIRE(fault != 0);
  for (const std::string_view part : parts) CHECK(job.output().find(part) != std::string::npos);
  double longest = 0;
  bool one_says_so = job.start() != Start::tf_config;
  for (std::size_t child = 0; child < job.statuses().size(); ++child) {
    if (job.start() != Start::tf_config || child == job.plan().victim) continue;
    const int ended = job.statuses()[child];
    CHECK((ended == status || ended == 3 || ended == 70));
    one_says_so = one_says_so || ended == status || ended == 3;
    longest = std::max(longest, job.ends()[child] - fault);
  }
  CHECK(one_says_so);
  if (longest > 0) std::printf("%-90s %.3f s\n", describe(job).c_str(), longest);
}

}  // namespace

TEST_CASE("all others name a worker that is killed between collectives (spec A12, O01)") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "kill"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "kill"}},
       {Start::mpirun, {.policy = "ring", .ranks = 2, .fault = "kill"}},
       {Start::tf_config, {.policy = "flat", .ranks = 3, .fault = "kill", .victim = 0}},
       {Start::mpirun, {.policy = "mpi", .ranks = 3, .fault = "kill", .victim = 0}},
       {Start::mpirun_keeping, {.policy = "flat", .ranks = 3, .fault = "kill"}}},
      [](const Job& job) {
        check_survivors(job, "Unavailable", {"orker " + std::to_string(job.plan().victim) + " on host ", " is gone ("});
      });
}

TEST_CASE("all others name a worker that is killed in a collective (spec A12, O01)") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 2, .fault = "kill_inside"}},
       {Start::tf_config, {.policy = "flat", .ranks = 3, .fault = "kill_inside"}},
       {Start::mpirun, {.policy = "ring", .ranks = 3, .fault = "kill_inside", .replicas = 2}},
       {Start::mpirun_keeping, {.policy = "flat", .ranks = 2, .fault = "kill_inside"}}},
      [](const Job& job) {
        check_survivors(job, "Unavailable", {"orker 1 on host ", " is gone ("});
      });
}

TEST_CASE("a worker that is killed in an uninterruptible collective of MPI ends the others") {
  run({{Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "kill_inside"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 3, .fault = "kill_inside", .victim = 0}},
       {Start::mpirun_keeping, {.policy = "mpi", .ranks = 2, .fault = "kill_inside"}}},
      [](const Job& job) {
        check_ended_survivors(job, {"Worker " + std::to_string(job.plan().victim) + " on host ", " is gone ("});
      });
}

TEST_CASE("all others name a worker that is killed while variables get their first values") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "kill_in_broadcast", .victim = 0}},
       {Start::tf_config, {.policy = "flat", .ranks = 2, .fault = "kill_in_broadcast"}},
       {Start::mpirun, {.policy = "window", .ranks = 2, .fault = "kill_in_broadcast"}}},
      [](const Job& job) {
        check_survivors(job, "Unavailable", {"orker " + std::to_string(job.plan().victim) + " on host ", " is gone ("});
      });
}

TEST_CASE("a worker that dies while MPI starts ends the others, which cannot interrupt it") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "kill_in_init"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "kill_in_init", .victim = 0}}},
      [](const Job& job) {
        check_ended_survivors(job, {"Worker " + std::to_string(job.plan().victim) + " on host ", " is gone ("});
      });
  run({{Start::mpirun_keeping, {.policy = "ring", .ranks = 3, .fault = "kill_in_init", .start_ms = 8000}}},
      [](const Job& job) {
        check_ended_survivors(job, {"stuck in MPI_Init", "waited 8 s"});
      });
  run({{Start::mpirun, {.policy = "ring", .ranks = 2, .fault = "kill_in_init"}}},
      [](const Job& job) { CHECK(job.statuses()[0] != 0); });
}

TEST_CASE("a stopped worker is named at the deadline, with its last operation (spec A12, O01)") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "stop", .timeout_ms = 6000}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "stop", .victim = 0, .timeout_ms = 6000}},
       {Start::mpirun, {.policy = "ring", .ranks = 2, .fault = "stop", .timeout_ms = 0}},
       {Start::mpirun_keeping, {.policy = "flat", .ranks = 3, .fault = "stop", .timeout_ms = 6000}}},
      [](const Job& job) {
        check_survivors(
            job, "DeadlineExceeded",
            {"worker " + std::to_string(job.plan().victim) + " (host ", ") did not", " and waited ",
             job.plan().policy == "ring" ? "last collective: barrier" : "last collective: end of reduce_and_apply",
             "called all_reduce(sum) of 1 f32"},
            true);
      });
}

TEST_CASE("a worker that is stopped for less than the deadline changes nothing") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "pause", .timeout_ms = 30'000}},
       {Start::tf_config, {.policy = "flat", .ranks = 2, .fault = "pause", .timeout_ms = 30'000}},
       {Start::mpirun, {.policy = "mpi", .ranks = 2, .fault = "pause", .replicas = 2, .timeout_ms = 30'000}}},
      [](const Job& job) {
        for (const int status : job.statuses()) CHECK(status == 0);
        for (std::size_t rank = 0; rank < job.plan().ranks; ++rank) {
          CHECK(job.last(rank, "done").at != 0);
          CHECK(job.last(rank, "done").at - job.last(1, "fault").at > 0.3);
        }
      });
}

TEST_CASE("finished workers wait for one that ends later") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "late"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "late", .victim = 0}},
       {Start::mpirun, {.policy = "flat", .ranks = 2, .fault = "late"}}},
      [](const Job& job) {
        for (const int status : job.statuses()) CHECK(status == 0);
      });
}

TEST_CASE("a worker that never ends, or whose server is stopped, is named at the end, and ended (spec O01)") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "never_ends", .timeout_ms = 4000}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "stop_at_end", .victim = 0, .timeout_ms = 4000}},
       {Start::tf_config, {.policy = "ring", .ranks = 2, .fault = "stop_server", .timeout_ms = 4000}},
       {Start::mpirun, {.policy = "ring", .ranks = 3, .fault = "never_ends", .timeout_ms = 4000}}},
      [](const Job& job) {
        const std::string victim = "orker " + std::to_string(job.plan().victim);
        if (job.plan().fault == "stop_server") {
          // Both wait until the same deadline. The first that ends reports it, and may break the other's wait first.
          CHECK(job.output().find("stuck in MPI_Finalize") != std::string::npos);
          CHECK(job.output().find("a signal has stopped the server process of this host") != std::string::npos);
          CHECK((job.statuses()[0] == 71 || job.statuses()[1] == 71));
        } else {
          check_ended_survivors(job, {"has finished and waits for w" + victim, "within 4 s"}, 71);
        }
        // The server of its node ends it.
        if (job.start() == Start::tf_config && job.plan().fault != "stop_server")
          CHECK(job.statuses()[job.plan().victim] == 128 + SIGKILL);
      });
}

TEST_CASE("limits of the system are tolerated, or all workers report the required number at once") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "low_limits"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "low_limits", .replicas = 2}},
       {Start::tf_config, {.policy = "ring", .ranks = 2, .fault = "few_files"}}},
      [](const Job& job) {
        for (std::size_t rank = 0; rank < job.plan().ranks; ++rank) {
          const bool lives = job.plan().fault == "low_limits";
          CHECK(job.statuses()[rank] == (lives ? 0 : 3));
          if (!lives)
            CHECK(job.last(rank, "error").text.find("may have 22 files open, too few for a job of 2 workers") !=
                  std::string::npos);
        }
      });
}

TEST_CASE("on a signal, a worker prints what it waits for and since when, in a step and at its end" *
          doctest::skip(has_mpich)) {
  const auto plan = [](const char* policy, const char* fault, std::size_t replicas) {
    return Plan{.policy = policy, .ranks = 2, .fault = fault, .replicas = replicas};
  };
  // One after another, because each is busy for three seconds only. On a busy machine, worker 0 may start to wait late,
  // so the test repeats the signal; mpirun forwards a signal only once.
  const auto ask = [](Job& job) {
    job.await(1, "fault");
    std::this_thread::sleep_for(1s);
    for (int times = 0; times < 8 && job.output().find(" waits for worker 1 ") == std::string::npos; ++times) {
      kill(job.children()[0], SIGUSR1);
      std::this_thread::sleep_for(200ms);
    }
  };
  Job window{Start::tf_config, plan("ring", "busy", 2)};
  ask(window);
  Job messages{Start::tf_config, plan("flat", "busy", 1)};
  ask(messages);
  Job of_mpi{Start::mpirun, plan("mpi", "busy", 1)};
  ask(of_mpi);
  Job end{Start::tf_config, plan("ring", "late", 1)};
  ask(end);
  CHECK(Job::finish({&window, &messages, &of_mpi, &end}) == 0);
  for (Job* const job : {&window, &messages, &of_mpi}) {
    INFO(describe(*job), "\n", job->output());
    for (const int status : job->statuses()) CHECK(status == 0);
    CHECK(job->output().find("dist: worker 0 on host ") != std::string::npos);
    CHECK(job->output().find(" waits for worker 1 (host ") != std::string::npos);
    CHECK(job->output().find(" in all_reduce(sum) of 1 f32, since ") != std::string::npos);
  }
  INFO(end.output());
  CHECK(end.output().find(" waits for worker 1 on host ") != std::string::npos);
  CHECK(end.output().find(" at the end of the process, since ") != std::string::npos);
}

TEST_CASE("an exit with status 0 during the work is a loss (spec O01)") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 2, .fault = "leave"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 3, .fault = "exit"}},
       {Start::tf_config, {.policy = "window", .ranks = 2, .fault = "exit", .victim = 0}},
       {Start::mpirun, {.policy = "mpi", .ranks = 2, .fault = "leave"}},
       {Start::mpirun_keeping, {.policy = "ring", .ranks = 3, .fault = "leave"}},
       {Start::mpirun_keeping, {.policy = "flat", .ranks = 2, .fault = "exit"}}},
      [](const Job& job) {
        check_survivors(job, "Unavailable", {"orker " + std::to_string(job.plan().victim) + " on host ", " is gone ("});
        if (job.start() == Start::tf_config) CHECK(job.statuses()[job.plan().victim] == 0);
      });
}

TEST_CASE("a worker that ends its strategy early is named by the others, long before the deadline") {
  const auto plan = [](const char* policy, std::size_t ranks, const char* fault) {
    return Plan{.policy = policy, .ranks = ranks, .fault = fault, .timeout_ms = 60'000};
  };
  run({{Start::tf_config, plan("ring", 3, "return")},
       {Start::mpirun, plan("window", 2, "return")},
       {Start::tf_config, plan("mpi", 2, "return")},
       {Start::tf_config, plan("flat", 3, "return")},
       {Start::mpirun, plan("mpi", 2, "return")},
       {Start::mpirun, plan("mpi", 3, "return")},
       {Start::mpirun, plan("flat", 2, "return")}},
      [](const Job& job) {
        check_survivors(
            job, "CollectiveMismatch",
            {"called all_reduce(sum) of 1 f32", "worker 1 (host ", ") has ended its strategy; its last collective: "});
      });
  run({{Start::mpirun, plan("mpi", 2, "return_from_data")},
       {Start::mpirun, plan("mpi", 3, "return_from_data")},
       {Start::mpirun, plan("ring", 2, "return_from_data")},
       {Start::tf_config, plan("ring", 3, "return_from_data")}},
      [](const Job& job) {
        check_survivors(job, "CollectiveMismatch",
                        {"whether there is a next step, but worker 1 (host ", ") has ended its strategy"});
      });
}

TEST_CASE("an exception in one worker is raised in all, with its text") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "throw_in_replica"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "throw_in_replica", .replicas = 2}},
       {Start::tf_config, {.policy = "flat", .ranks = 3, .fault = "throw_in_replica", .victim = 0}},
       {Start::mpirun, {.policy = "ring", .ranks = 2, .fault = "throw_in_replica", .replicas = 2}},
       {Start::mpirun_keeping, {.policy = "mpi", .ranks = 3, .fault = "throw_in_replica"}}},
      [](const Job& job) {
        const std::size_t last_of_victim = (job.plan().victim + 1) * job.plan().replicas - 1;
        check_survivors(job, "PeerError",
                        {"Worker " + std::to_string(job.plan().victim) + " on host ",
                         "Replica " + std::to_string(last_of_victim) + " failed in its replica function",
                         "It threw: the loss is not a number"});
        CHECK(job.last(job.plan().victim, "error").text == "exception: the loss is not a number");
      });
}

TEST_CASE("an exception outside replica functions ends the wait of the others, and keeps its text on its worker") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 2, .fault = "throw_outside"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 3, .fault = "throw_outside"}},
       {Start::mpirun, {.policy = "flat", .ranks = 2, .fault = "throw_outside"}}},
      [](const Job& job) {
        check_survivors(job, "PeerError",
                        {"Worker 1 on host ", " failed (",
                         "an exception that left the scope of its strategy; see what that worker printed"});
        CHECK(job.last(job.plan().victim, "error").text == "exception: the disk of the second worker is full");
      });
}

TEST_CASE("workers that disagree all report both sides, and may continue together") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "disagree"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "disagree"}},
       {Start::mpirun, {.policy = "flat", .ranks = 3, .fault = "disagree", .replicas = 2}}},
      [](const Job& job) {
        for (const int status : job.statuses()) CHECK(status == 0);
        struct Sides {
          std::string_view what, usual, victim;
        };
        double longest = 0;
        for (std::size_t rank = 0; rank < job.plan().ranks; ++rank) {
          std::vector<Said> said;
          for (const Said& one : job.said(rank))
            if (one.word == "mismatch" || one.word == "fault") said.push_back(one);
          const std::vector<Sides> expected{{"count", "all_reduce(sum) of 64 f32", "all_reduce(sum) of 63 f32"},
                                            {"type", "all_reduce(sum) of 64 f32", "all_reduce(sum) of 64 i32"},
                                            {"reduction", "all_reduce(sum) of 64 f32", "all_reduce(max) of 64 f32"},
                                            {"root", "broadcast of 64 f32 from 0", "broadcast of 64 f32 from 1"},
                                            {"kind", "all_reduce(sum) of 64 f32", "barrier"}};
          REQUIRE(said.size() == 2 * expected.size());
          for (std::size_t i = 0; i < expected.size(); ++i) {
            const std::string& text = said[2 * i + 1].text;
            CHECK(text.starts_with(expected[i].what));
            CHECK(text.find(dist::concat("called ", expected[i].usual, " as step")) != std::string::npos);
            CHECK(text.find(dist::concat("called ", expected[i].victim, " as step")) != std::string::npos);
            CHECK(text.find("worker 1 (host ") != std::string::npos);
            longest = std::max(longest, said[2 * i + 1].at - said[2 * i].at);
          }
        }
        std::printf("%-90s %.3f s\n", describe(job).c_str(), longest);
      });
}

TEST_CASE("all workers detect a worker that skips a collective, at the next one") {
  run({{Start::tf_config, {.policy = "ring", .ranks = 3, .fault = "skip"}},
       {Start::tf_config, {.policy = "mpi", .ranks = 2, .fault = "skip", .replicas = 2}},
       {Start::mpirun, {.policy = "flat", .ranks = 2, .fault = "skip"}}},
      [](const Job& job) {
        check_survivors(
            job, "CollectiveMismatch",
            {"called all_reduce(sum) of 1 f32", "worker 1 (host ", "called reduce_and_apply(mean) of 1000 f32"});
        CHECK(job.last(1, "error").text.starts_with("CollectiveMismatch"));
      });
}

TEST_CASE("workers that cannot connect name the missing one, or the wrong address, index or list" *
          doctest::skip(has_mpich)) {
  const Plan two{.policy = "ring", .ranks = 2, .fault = "none", .start_ms = 15'000};
  Plan three = two;
  three.ranks = 3;
  const auto start_some = [](Job& job, const std::vector<std::string>& addresses, std::size_t count) {
    std::vector<pid_t> started;
    for (std::size_t rank = 0; rank < count; ++rank) started.push_back(job.add(rank, Job::tf_config(addresses, rank)));
    return started;
  };

  // Kills one while it waits for the last: first the second, then the first, which had started the server.
  Job killed{three}, killed_first{three};
  const std::vector<std::string> addresses = Job::free_addresses(6);
  const std::vector<std::string> lower{addresses.begin(), addresses.begin() + 3},
      upper{addresses.begin() + 3, addresses.end()};
  const pid_t second = start_some(killed, lower, 2)[1];
  const pid_t first = start_some(killed_first, upper, 2)[0];

  // Another process has the port of the first worker.
  Job in_use{two};
  const dist::io::Descriptor holder{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  REQUIRE(bind(holder.get(), reinterpret_cast<const sockaddr*>(&place), size) == 0);
  REQUIRE(listen(holder.get(), 1) == 0);
  REQUIRE(getsockname(holder.get(), reinterpret_cast<sockaddr*>(&place), &size) == 0);
  const std::string held = "127.0.0.1:" + std::to_string(ntohs(place.sin_port));
  start_some(in_use, {held, Job::free_addresses(1)[0]}, 1);

  Job unresolvable{two};
  start_some(unresolvable, {"no-such-host.invalid:2222", "no-such-host.invalid:2223"}, 2);

  Job differing{two};
  const std::vector<std::string> some = Job::free_addresses(3);
  differing.add(0, Job::tf_config({some[0], some[1]}, 0));
  differing.add(1, Job::tf_config({some[0], some[2]}, 1));

  // The second start of index 1 is rejected; the others wait for the last worker and continue.
  Job twice{three};
  const std::vector<std::string> right = Job::free_addresses(3);
  start_some(twice, right, 2);

  std::this_thread::sleep_for(400ms);
  kill(second, SIGKILL);
  kill(first, SIGKILL);
  twice.add(3, Job::tf_config(right, 1));
  CHECK(twice.await(3, "error").text.starts_with("RendezvousError"));
  twice.add(2, Job::tf_config(right, 2));
  CHECK(Job::finish({&killed, &killed_first, &in_use, &unresolvable, &differing, &twice}) == 0);

  const auto says = [](const Job& job, std::size_t rank, std::initializer_list<std::string_view> parts) {
    const std::string said = job.last(rank, "error").text;
    INFO(said, "\n", job.output());
    for (const std::string_view part : parts) CHECK(said.find(part) != std::string::npos);
    CHECK(job.files_left() == "");
  };
  says(killed, 0, {"DeadlineExceeded", lower[1], lower[2]});
  says(killed_first, 1, {"DeadlineExceeded", "Worker 0", upper[0]});
  says(in_use, 0, {"RendezvousError", held, "Address already in use", "the same index", "ss -ltnp"});
  says(unresolvable, 0,
       {"RendezvousError", "cannot listen at its own address no-such-host.invalid:2222", "does not resolve"});
  says(unresolvable, 1, {"DeadlineExceeded", "Worker 0 at no-such-host.invalid:2222", "does not resolve"});
  says(differing, 0, {"DeadlineExceeded", "Worker 1 on host ", "has another list of tasks"});
  says(differing, 1, {"RendezvousError", "Worker 1 on host ", "has another list of tasks"});
  says(twice, 3, {"worker 1"});
  for (const std::size_t rank : {0U, 1U, 2U}) CHECK(twice.last(rank, "done").at != 0);
}
