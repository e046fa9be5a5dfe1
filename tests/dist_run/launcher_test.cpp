// The launcher for one machine, with shell scripts as tasks.
#include "../../cmake/dist_run/launcher.hpp"

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <dist/core/text.hpp>

namespace {

using dist::concat;
using dist_run::Clock;
using dist_run::Options;

/// Runs a shell script in all tasks, checks the status of the job, and returns the output.
std::string printed_by(Options options, const std::string& script, int expected_status) {
  std::FILE* out = std::tmpfile();
  options.secret = true;
  options.grace = std::chrono::milliseconds{200};
  options.command = {"/bin/sh", "-c", script};
  CHECK(dist_run::run(options, out, out) == expected_status);
  std::string printed(static_cast<std::size_t>(std::ftell(out)), '\0');
  std::rewind(out);
  printed.resize(std::fread(printed.data(), 1, printed.size(), out));
  std::fclose(out);
  return printed;
}

bool contains(const std::string& all, std::string_view part) { return all.find(part) != std::string::npos; }

/// Returns a script that runs different commands for each type of task.
std::string by_type(std::string_view of_chief, std::string_view of_server, std::string_view of_worker,
                    std::string_view of_evaluator = "exit 0") {
  return concat("case $TF_CONFIG in *'type\": \"chief'*) ", of_chief, ";; *'type\": \"ps'*) ", of_server,
                ";; *'type\": \"evaluator'*) ", of_evaluator, ";; *) ", of_worker, ";; esac");
}
const std::string lasting = "while :; do sleep 0.1; done";

}  // namespace

TEST_CASE("each worker gets its TF_CONFIG and the secret and its lines are prefixed with its name") {
  signal(SIGCHLD, SIG_IGN);  // as the program that starts the launcher may do
  const std::string all = printed_by({.workers = 3}, "echo \"$TF_CONFIG\"; echo secret of ${#DIST_JOB_SECRET} >&2", 0);
  CAPTURE(all);
  for (const std::size_t worker : {0U, 1U, 2U}) {
    CHECK(contains(all, concat("[worker ", worker, "] {\"cluster\": {\"worker\": [\"127.0.0.1:")));
    CHECK(contains(all, concat("\"task\": {\"type\": \"worker\", \"index\": ", worker, "}}\n")));
    CHECK(contains(all, concat("[worker ", worker, "] secret of 64\n")));
  }
}

TEST_CASE("a failed worker ends the job with its status, and tasks that do not end are killed") {
  const std::string failed = printed_by(
      {.workers = 2}, "case $TF_CONFIG in *'index\": 1'*) exit 7;; esac; trap '' TERM; while :; do sleep 1; done", 7);
  CAPTURE(failed);
  CHECK(contains(failed, "dist-run: worker 1 ended with status 7. The other tasks have 0.2 s to exit\n"));
  CHECK(contains(printed_by({.workers = 2},
                            "case $TF_CONFIG in *'index\": 1'*) sleep 1; exit 7;; esac;"
                            "(trap 'echo told; exit' TERM; for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done) & wait",
                            7),
                 "[worker 0] told\n"));  // processes that a worker started receive SIGTERM, too
}

TEST_CASE("a task writes to a terminal line by line and its last line may lack an end") {
  CHECK(contains(
      printed_by({.workers = 2},
                 "case $TF_CONFIG in *'index\": 0'*) yes | head -n 100000 | tail -n 1; test -t 1 && echo lines;; esac",
                 0),
      "[worker 0] y\n[worker 0] lines\n"));
  CHECK(contains(printed_by({.workers = 1}, "printf 'no end'; exit 0", 0), "[worker 0] no end\n"));
}

TEST_CASE("a failed job restarts up to the allowed number of times") {
  const char* third_time = "echo restart $DIST_RESTARTS; [ $DIST_RESTARTS = 2 ] || exit 5";
  CHECK(contains(printed_by({.workers = 1, .restarts = 2}, third_time, 0), "[worker 0] restart 2\n"));
  CHECK(contains(printed_by({.workers = 1, .restarts = 1}, third_time, 5), "Restarting all tasks (1 of 1)"));
}

TEST_CASE("a job with parameter servers ends with its chief") {
  const std::string all = printed_by({.workers = 2, .servers = 1}, "echo \"$TF_CONFIG\"", 0);
  CAPTURE(all);
  CHECK(contains(all, "[chief 0] {\"cluster\": {\"chief\": [\"127.0.0.1:"));
  CHECK(contains(all, "\"], \"ps\": [\"127.0.0.1:"));
  CHECK(contains(all, "\"], \"worker\": [\"127.0.0.1:"));
  CHECK(contains(all, "\"task\": {\"type\": \"chief\", \"index\": 0}}\n"));
  CHECK_FALSE(contains(printed_by({.workers = 1, .servers = 2}, by_type("exit 0", lasting, lasting), 0), "dist-run:"));
}

TEST_CASE("a lost worker restarts without ending a job with parameter servers, and a lost server ends it") {
  const std::string lost = printed_by({.workers = 1, .servers = 1}, by_type("sleep 0.5; exit 3", lasting, "exit 9"), 3);
  CHECK(contains(lost, "dist-run: worker 0 ended with status 9\n"));
  CHECK(contains(lost, "dist-run: chief 0 ended with status 3"));

  const std::string back = printed_by(
      {.workers = 1, .servers = 1, .restarts = 1},
      by_type("sleep 1", lasting, "echo start $DIST_RESTARTS; [ $DIST_RESTARTS = 1 ] || exit 9; " + lasting), 0);
  CHECK(contains(back, "worker 0 ended with status 9. Restarting it (1 of 1)\n[worker 0] start 1\n"));

  const std::string again = printed_by({.workers = 1, .servers = 1, .restarts = 1},
                                       by_type("[ $DIST_RESTARTS = 1 ] || { sleep 1; exit 75; }",
                                               "[ $DIST_RESTARTS = 1 ] || { sleep 0.2; exit 9; }; " + lasting, lasting),
                                       0);
  CHECK(contains(again, "dist-run: ps 0 ended with status 9. The other tasks have"));
  CHECK(contains(again, "dist-run: Restarting all tasks (1 of 1)\n"));
}

TEST_CASE("an evaluator outlives the other tasks and does not end them") {
  const std::string late = "sleep 1; echo evaluated";
  for (const std::size_t servers : {std::size_t{0}, std::size_t{1}}) {
    const std::string all = printed_by({.workers = 1, .servers = servers, .evaluator = true},
                                       "echo \"$TF_CONFIG\"; " + by_type("exit 0", lasting, "exit 0", late), 0);
    CAPTURE(all);
    // Parameter servers reject a cluster with an evaluator, so the evaluator has its own cluster (spec J12).
    CHECK(contains(all, "], \"evaluator\": [\"127.0.0.1:") == (servers == 0));
    CHECK(contains(all, "[evaluator 0] {\"cluster\": {\"evaluator\": [\"127.0.0.1:") == (servers > 0));
    CHECK(contains(all, "\"task\": {\"type\": \"evaluator\", \"index\": 0}}\n"));
    CHECK(contains(all, "[evaluator 0] evaluated\n"));
  }
  const std::string lost = printed_by({.workers = 1, .evaluator = true}, by_type("", "", "sleep 0.5", "exit 9"), 0);
  CHECK(contains(lost, "dist-run: evaluator 0 ended with status 9\n"));
  const std::string failed = printed_by({.workers = 1, .evaluator = true}, by_type("", "", "exit 4", lasting), 4);
  CHECK(contains(failed, "dist-run: worker 0 ended with status 4. The other tasks have"));
}
