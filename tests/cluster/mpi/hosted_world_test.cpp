#include <dist/cluster/mpi/hosted_world.hpp>

#include <doctest/doctest.h>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <cluster/mpi/world_ranks.hpp>
#include <net/ports.hpp>
#include <support/processes.hpp>
#include <support/stderr_of.hpp>

using dist::HostedOptions;
using dist::HostedWorld;
using namespace dist_test;
using support::Processes;

namespace {

HostedOptions options_for(const std::vector<dist::HostedTask>& tasks, std::size_t rank) {
  HostedOptions options;
  options.tasks = tasks;
  options.rank = rank;
  options.deadline = 90s;
  options.port_patience = 60s;
  return options;
}

constexpr std::chrono::seconds longest{150};  // for all processes of a test

int world_rank() {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Returns true if this process has a socket that listens on more than loopback.
bool is_open_to_networks() {
  for (int each = 0; each < 256; ++each) {
    int listens = 0;
    socklen_t size = sizeof listens;
    dist::net::SocketAddress address;
    address.size = sizeof address.storage;
    if (getsockopt(each, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
        getsockname(each, address.get(), &address.size) == 0 && !address.is_loopback())
      return true;
  }
  return false;
}

/// Returns the child of `process` that leads a session and handles SIGSEGV: the server of its node; 0 before it exists.
pid_t server_of(pid_t process) {
  std::ifstream children{dist::concat("/proc/", process, "/task/", process, "/children")};
  for (pid_t child = 0; children >> child;) {
    if (getsid(child) != child) continue;
    std::ifstream status{dist::concat("/proc/", child, "/status")};
    for (std::string key; status >> key;)
      if (std::uint64_t caught = 0;
          key == "SigCgt:" && status >> std::hex >> caught && (caught >> (SIGSEGV - 1) & 1) != 0)
        return child;
  }
  return 0;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// All ranks join, `victim` exits with `end(world)`, and the others report the loss and exit with status 3.
template <class End>
void check_loss(std::size_t ranks, std::size_t victim, std::string_view why, int victims_status, End&& end) {
  const auto tasks = free_endpoints(ranks);
  Notes notes{ranks};
  Processes processes{ranks, [&](std::size_t rank) {
                        const HostedWorld world = join_and_initialise(options_for(tasks, rank));
                        MPI_Barrier(MPI_COMM_WORLD);
                        if (rank == victim) {
                          notes.write(rank, now_as_text());
                          end();
                        }
                        const auto lost = await_loss(world);
                        if (!lost) return 1;
                        std::printf("rank %zu of %zu: worker %zu seen lost after %.4f s\n", rank, ranks, lost->rank,
                                    seconds_since(notes[victim]));
                        notes.write(rank, dist::concat(lost->rank, " ", lost->host, " ", lost->why));
                        return 3;
                      }};
  const std::vector<int> statuses = processes.wait(longest);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CAPTURE(rank);
    CHECK(statuses[rank] == (rank == victim ? victims_status : 3));
    if (rank != victim) CHECK(notes[rank] == dist::concat(victim, " 127.0.0.1 ", why));
  }
}

}  // namespace

TEST_CASE("processes started by hand form one world with shared memory") {
  for (const std::size_t ranks : {1U, 2U, 3U, 4U}) {
    CAPTURE(ranks);
    const auto tasks = free_endpoints(ranks);
    const auto start = std::chrono::steady_clock::now();
    Processes processes{ranks, [&](std::size_t task) {
                          HostedWorld world = join_and_initialise(options_for(tasks, task));
                          std::printf("rank %zu of %zu is up after %.2f s\n", task, ranks, seconds_since(start));
                          int size = 0, node_size = 0, sum = 0;
                          const int rank = world_rank();
                          MPI_Comm_size(MPI_COMM_WORLD, &size);
                          MPI_Comm node;
                          MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
                          MPI_Comm_size(node, &node_size);
                          const int mine = rank + 1;
                          MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                          const int n = static_cast<int>(ranks);
                          const bool right = rank == static_cast<int>(task) && size == n && node_size == n &&
                                             sum == n * (n + 1) / 2 && std::getenv("PMIX_RANK") == nullptr &&
                                             std::getenv("SLURM_JOBID") == nullptr && !is_open_to_networks();
                          world.goodbye();
                          MPI_Finalize();
                          return right ? 0 : 1;
                        }};
    CHECK(processes.wait(longest) == std::vector<int>(ranks, 0));
  }
}

TEST_CASE("a silent listener on a port of X servers, such as TensorBoard at 6006, delays no process") {
  dist::io::Descriptor mute;
  for (int port = 6000; port < 6010 && !mute; ++port)
    mute = dist::net::detail::try_to_listen(dist::net::resolve({"127.0.0.1", std::to_string(port)}).addresses.at(0));
  REQUIRE(mute);
  const auto tasks = free_endpoints(2);
  Processes processes{2, [&](std::size_t rank) {
                        HostedWorld world = join_and_initialise(options_for(tasks, rank));
                        const bool right = std::getenv("HWLOC_COMPONENTS") == nullptr;
                        world.goodbye();
                        MPI_Finalize();
                        return right ? 0 : 1;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 0});
}

TEST_CASE("a program without standard output and error joins, and its output reaches no socket") {
  const auto tasks = free_endpoints(2);
  Processes processes{2, [&](std::size_t rank) {
                        for (const int each : {0, 1, 2}) close(each);
                        HostedWorld world = join_and_initialise(options_for(tasks, rank));
                        bool right = true;
                        for (const int each : {0, 1, 2}) {
                          struct stat status {};
                          right = right && fstat(each, &status) == 0 && S_ISCHR(status.st_mode);
                          right = right && write(each, "words", 5) == 5;
                        }
                        MPI_Barrier(MPI_COMM_WORLD);
                        right = right && !world.lost_peer();
                        MPI_Barrier(MPI_COMM_WORLD);
                        world.goodbye();
                        MPI_Finalize();
                        return right ? 0 : 1;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 0});
}

TEST_CASE("a program that ignores SIGCHLD, or has children reaped, can join") {
  const auto tasks = free_endpoints(2);
  Processes processes{2, [&](std::size_t rank) {
                        signal(SIGCHLD, SIG_IGN);
                        HostedWorld world = join_and_initialise(options_for(tasks, rank));
                        world.goodbye();
                        MPI_Finalize();
                        return 0;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 0});
}

TEST_CASE("a killed rank is reported to all others") {
  const auto kill_me = [] { raise(SIGKILL); };
  check_loss(2, 1, "its process exited unexpectedly", 128 + SIGKILL, kill_me);
  check_loss(3, 0, "its process exited unexpectedly", 128 + SIGKILL, kill_me);
  check_loss(4, 2, "its process exited unexpectedly", 128 + SIGKILL, kill_me);
}

TEST_CASE("exiting with status 0 without a goodbye is a loss") {
  check_loss(2, 0, "its process exited unexpectedly", 0, [] { _exit(0); });
}

TEST_CASE("MPI_Abort of one rank is reported to the others") {
  check_loss(3, 1, "it called MPI_Abort with 5", 5, [] { MPI_Abort(MPI_COMM_WORLD, 5); });
}

TEST_CASE("after a loss, processes that do not exit by themselves are killed") {
  const auto tasks = free_endpoints(3);
  const auto start = std::chrono::steady_clock::now();
  Processes processes{3, [&](std::size_t rank) {
                        HostedOptions options = options_for(tasks, rank);
                        options.grace = 300ms;
                        const HostedWorld world = HostedWorld::join(options);
                        if (rank == 1) raise(SIGKILL);
                        int given = 0;  // waits forever for rank 1
                        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
                        return 0;
                      }};
  const std::vector<int> statuses = processes.wait(longest);
  std::printf("rank 1 killed before MPI_Init: all had ended after %.2f s\n", seconds_since(start));
  CHECK(statuses[1] == 128 + SIGKILL);
  for (const std::size_t rank : {0U, 2U}) CHECK((statuses[rank] != 0 && statuses[rank] != 124));
}

TEST_CASE("a rank that does not enter MPI_Init is named at the deadline") {
  const auto tasks = free_endpoints(2);
  Notes notes{2};
  Processes processes{2, [&](std::size_t rank) {
                        HostedOptions options = options_for(tasks, rank);
                        options.deadline = 5s;  // also for the rendezvous before, on a busy machine
                        options.grace = 200ms;
                        const HostedWorld world = HostedWorld::join(options);
                        const auto lost = await_loss(world);
                        notes.write(rank, lost ? dist::concat(lost->rank, " ", lost->why) : "nothing");
                        return 0;
                      }};
  processes.wait(longest);
  CHECK(notes[1] == "0 it has not entered MPI_Init within 5 s");
}

TEST_CASE("a rank that a signal has stopped is named at the deadline, and killed after the grace period") {
  const auto tasks = free_endpoints(2);
  Notes notes{2};
  Processes processes{2, [&](std::size_t rank) {
                        HostedOptions options = options_for(tasks, rank);
                        options.deadline = 5s;
                        options.grace = 200ms;
                        const HostedWorld world = HostedWorld::join(options);
                        if (rank == 1) raise(SIGSTOP);
                        const auto lost = await_loss(world);
                        notes.write(rank, lost ? dist::concat(lost->rank, " ", lost->why) : "nothing");
                        return 0;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 128 + SIGKILL});
  CHECK(notes[0] == "1 a signal has stopped it, and it has not returned from MPI_Init within 5 s");
}

TEST_CASE("the lifeline reports the exit of the server, and the next world removes its files") {
  const auto tasks = free_endpoints(2);
  Notes notes{3};
  Processes processes{2, [&](std::size_t rank) {
                        HostedWorld world = HostedWorld::join(options_for(tasks, rank));
                        const char* const folder = std::getenv("PMIX_SERVER_TMPDIR");
                        if (folder == nullptr) return 2;
                        notes.write(2, folder);
                        if (rank == 0 && !exists(notes[2])) return 1;
                        int given = 0;
                        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
                        world.initialised();
                        MPI_Barrier(MPI_COMM_WORLD);
                        if (rank == 0) kill(world.server(), SIGKILL);
                        const auto lost = await_loss(world);
                        notes.write(rank, lost ? dist::concat(lost->rank, " ", lost->host, " ", lost->why) : "nothing");
                        return 3;
                      }};
  processes.wait(longest);
  for (const std::size_t rank : {0U, 1U})
    CHECK(notes[rank] == "0 127.0.0.1 the server process of its host, which it had started, has exited");
  CHECK(contains(notes[2], "/dist-world."));
  const auto one = free_endpoints(1);
  Processes next{1, [&](std::size_t rank) {
                   HostedWorld world = join_and_initialise(options_for(one, rank));
                   world.goodbye();
                   MPI_Finalize();
                   return exists(notes[2]) ? 1 : 0;
                 }};
  CHECK(next.wait(longest) == std::vector<int>{0});
}

TEST_CASE("an MPI that does not use PMIx is detected") {
  const auto tasks = free_endpoints(2);
  Notes notes{2};
  Processes processes{
      2, [&](std::size_t rank) {
        HostedWorld world = HostedWorld::join(options_for(tasks, rank));
        for (const char* name : {"SLURM_NODELIST", "SLURM_JOBID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "PMIX_RANK"})
          unsetenv(name);
        int given = 0;  // like a library without PMIx: each process is a separate world
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
        try {
          world.initialised();
        } catch (const dist::RendezvousError& error) {
          notes.write(rank, error.what());
        }
        return 0;
      }};
  processes.wait(longest);
  for (const std::size_t rank : {0U, 1U})
    CHECK(contains(notes[rank], dist::concat("MPI_COMM_WORLD is not the world of the 2 tasks that joined (worker ",
                                             rank, " is its rank 0 of 1). Link Open MPI")));
}

TEST_CASE("the orderly exit of a rank is reported as such") {
  const auto tasks = free_endpoints(2);
  Notes notes{2};
  Processes processes{2, [&](std::size_t rank) {
                        HostedWorld world = join_and_initialise(options_for(tasks, rank));
                        if (rank == 1) world.goodbye();
                        std::optional<dist::LostPeer> gone;
                        for (int i = 0; i < 5000 && rank == 0 && !gone; ++i, usleep(1000)) gone = world.lost_peer();
                        if (gone) notes.write(rank, dist::concat(gone->rank, gone->in_order ? " in order" : " lost"));
                        if (rank == 0) world.goodbye();
                        MPI_Finalize();
                        return 0;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 0});
  CHECK(notes[0] == "1 in order");
}

TEST_CASE("a missing task is named to all others (spec A11)") {
  const auto tasks = free_endpoints(4);
  Notes notes{4};
  const auto start = std::chrono::steady_clock::now();
  Processes processes{4, [&](std::size_t rank) {
                        if (rank == 2) return 0;
                        HostedOptions options = options_for(tasks, rank);
                        options.deadline = 5s;
                        notes.write(rank, try_to_join(options));
                        return 0;
                      }};
  processes.wait(longest);
  std::printf("missing task named after %.2f s, its deadline being 5 s\n", seconds_since(start));
  for (const std::size_t rank : {0U, 1U, 3U})
    CHECK(contains(notes[rank],
                   dist::concat("deadline: Worker 2 at ", to_string(tasks[2]), " has not joined within 5 s")));
}

TEST_CASE("a missing task is named within the deadline, if the port was in use and by a task that connected early") {
  const auto tasks = free_endpoints(3);
  const auto others = free_endpoints(3);
  Notes notes{5};
  Processes processes{4, [&](std::size_t process) {
                        if (process == 3) {  // an earlier job, which holds the port for a while
                          const auto holder = dist::net::listen_at(tasks[0], {});
                          notes.write(4, "holds it");
                          usleep(1'500'000);
                          return 0;
                        }
                        while (notes[4].empty()) usleep(1000);
                        HostedOptions options = options_for(process == 0 ? tasks : others, process == 2 ? 1 : 0);
                        options.deadline = process == 2 ? 6s : process == 0 ? 5s : 12s;
                        options.patience = 300ms;
                        const testing::Ending ending =
                            testing::stderr_of([&] { notes.write(process, try_to_join(options)); });
                        if (process == 2) notes.write(3, ending.stderr_text);
                        return 0;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 0, 0, 0});
  CHECK(contains(notes[0], dist::concat("deadline: Worker 1 at ", to_string(tasks[1]), ", worker 2 at ",
                                        to_string(tasks[2]), " have not joined within 5 s")));
  const std::string missing = dist::concat("Worker 2 at ", to_string(others[2]), " has not joined");
  CHECK(contains(notes[2], dist::concat("deadline: ", missing, " within 6 s (no connection arrived)")));
  CHECK(notes[3] ==
        dist::concat("dist: worker 1 waits: ", missing, " yet (no connection arrived); waiting up to 6 s\n"));
}

TEST_CASE("if the first task is missing, the others name it") {
  const auto tasks = free_endpoints(3);
  Notes notes{3};
  Processes processes{3, [&](std::size_t rank) {
                        if (rank == 0) return 0;
                        HostedOptions options = options_for(tasks, rank);
                        options.deadline = 700ms;
                        notes.write(rank, try_to_join(options));
                        return 0;
                      }};
  processes.wait(longest);
  for (const std::size_t rank : {1U, 2U})
    CHECK(contains(notes[rank], dist::concat("deadline: Worker 0 at ", to_string(tasks[0]),
                                             " has not joined within 0.7 s (Connection refused)")));
}

TEST_CASE("a duplicate rank is refused, and the world still forms") {
  const auto tasks = free_endpoints(3);
  Notes notes{1};
  Processes processes{4, [&](std::size_t process) {
                        const std::size_t rank = process == 3 ? 1 : process;
                        // both connect before the job is complete
                        while (process == 2 && notes[0].empty()) usleep(1000);
                        try {
                          HostedWorld world = join_and_initialise(options_for(tasks, rank));
                          world.goodbye();
                          MPI_Finalize();
                        } catch (const dist::RendezvousError& error) {
                          notes.write(0, error.what());
                          return 5;
                        }
                        return 0;
                      }};
  std::vector<int> statuses = processes.wait(longest);
  std::sort(statuses.begin(), statuses.end());
  CHECK(statuses == std::vector<int>{0, 0, 0, 5});
  CHECK(contains(notes[0], "Worker 1 has joined twice (a second process, on host '"));
}

TEST_CASE("a second process with rank 0 finds its port in use") {
  const auto tasks = free_endpoints(2);
  Notes notes{1};
  Processes processes{3, [&](std::size_t process) {
                        while (process == 1 && notes[0].empty()) usleep(1000);
                        HostedOptions options = options_for(tasks, process == 2 ? 0 : process);
                        options.port_patience = 500ms;
                        try {
                          HostedWorld world = join_and_initialise(options);
                          world.goodbye();
                          MPI_Finalize();
                        } catch (const dist::RendezvousError& error) {
                          notes.write(0, error.what());
                          return 5;
                        }
                        return 0;
                      }};
  std::vector<int> statuses = processes.wait(longest);
  std::sort(statuses.begin(), statuses.end());
  CHECK(statuses == std::vector<int>{0, 0, 5});
  CHECK(contains(notes[0], dist::concat("This task cannot listen at its own address ", to_string(tasks[0]))));
  CHECK(contains(notes[0], "Address already in use"));
}

TEST_CASE("lists that differ are reported on both sides") {
  const auto tasks = free_endpoints(3);
  for (const std::string secret : {"", "of the job"}) {
    CAPTURE(secret);
    Notes notes{2};
    const auto start = std::chrono::steady_clock::now();
    Processes processes{2, [&](std::size_t rank) {
                          HostedOptions options = options_for({tasks[0], tasks[1]}, rank);
                          if (rank == 1) options.tasks.push_back(tasks[2]);
                          options.deadline = secret.empty() ? milliseconds{1000} : milliseconds{20'000};
                          options.secret = secret;
                          notes.write(rank, try_to_join(options));
                          return 0;
                        }};
    processes.wait(longest);
    std::printf("lists that differ: both sides knew after %.2f s\n", seconds_since(start));
    CHECK(contains(notes[1], "rendezvous: Worker 1 on host '"));
    CHECK(contains(notes[1], "has another list of tasks (its list has 3 tasks, the list here has 2)"));
    CHECK(contains(notes[0], secret.empty() ? "deadline: Worker 1 at " : "rendezvous: Worker 1 on host '"));
    CHECK(contains(notes[0], "has another list of tasks (its list has 3 tasks, the list here has 2)"));
  }
}

TEST_CASE("a secret admits only processes that have it") {
  const auto tasks = free_endpoints(2);
  Notes notes{3};
  Processes processes{3, [&](std::size_t process) {
                        HostedOptions options = options_for(tasks, process == 2 ? 1 : process);
                        options.secret = process == 2 ? "guessed" : "0123456789abcdef";
                        while (process == 1 && notes[2].empty()) usleep(1000);
                        if (process == 2) {
                          notes.write(2, try_to_join(options));
                          return 0;
                        }
                        HostedWorld world = join_and_initialise(options);
                        world.goodbye();
                        MPI_Finalize();
                        return 0;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>(3, 0));
  CHECK(contains(notes[2], "does not have the secret of the job (its proof is wrong)"));
  CHECK_FALSE(contains(notes[2], "guessed"));
}

TEST_CASE("a rank that exited before the others connected may reconnect (spec O02)") {
  const auto tasks = free_endpoints(3);
  for (const std::size_t restarted : {0U, 1U}) {
    CAPTURE(restarted);
    Notes notes{1};
    Processes processes{4, [&](std::size_t process) {
                          const std::size_t rank = process == 3 ? restarted : process;
                          if (process == restarted) {
                            notes.write(0, dist::concat(getpid()));
                            alarm(2);  // the kernel kills it while it waits for process 2
                            static_cast<void>(HostedWorld::join(options_for(tasks, rank)));
                          }
                          if (process >= 2) {
                            while (notes[0].empty()) usleep(1000);
                            const pid_t before = std::atoi(notes[0].c_str());
                            const auto has_ended = [&] {
                              const char state = dist::detail::process_state(before);
                              return state == 'Z' || state == ' ';
                            };
                            while (!has_ended()) usleep(1000);
                          }
                          HostedWorld world = join_and_initialise(options_for(tasks, rank));
                          world.goodbye();
                          MPI_Finalize();
                          return 0;
                        }};
    std::vector<int> statuses = processes.wait(longest);
    CHECK(statuses[restarted] == 128 + SIGALRM);
    statuses[restarted] = 0;
    CHECK(statuses == std::vector<int>(4, 0));
  }
}

TEST_CASE("a user without a home folder, and a machine with a long name, can have worlds") {
  struct stat root {};
  // a build folder that other users cannot enter
  if (stat("/", &root) != 0 || (root.st_mode & S_IXOTH) == 0) return;
  const auto tasks = free_endpoints(2);
  Processes processes{2, [&](std::size_t rank) {
                        if (unshare(CLONE_NEWUTS) == 0) {
                          const std::string name(64, 'a');
                          if (sethostname(name.data(), name.size()) != 0) return 2;
                        }
                        unsetenv("HOME");
                        constexpr uid_t nobody_listed = 54321;
                        if (geteuid() == 0 && setuid(nobody_listed) != 0) return 2;
                        HostedWorld world = join_and_initialise(options_for(tasks, rank));
                        const bool right = std::getenv("HOME") == nullptr;
                        world.goodbye();
                        MPI_Finalize();
                        return right ? 0 : 1;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 0});
}

TEST_CASE("a crash of the server process is reported with its signal") {
  const auto tasks = free_endpoints(2);
  Notes notes{2};
  Processes processes{2, [&](std::size_t process) {
                        if (process == 0) {
                          prctl(PR_SET_CHILD_SUBREAPER, 1);  // the server is reparented to this process
                          signal(SIGSEGV, SIG_DFL);          // the server must not inherit doctest's handler
                          notes.write(0, dist::concat(getpid()));
                          notes.write(1, try_to_join(options_for(tasks, 0)));
                          return 0;
                        }
                        while (notes[0].empty()) usleep(1000);
                        pid_t server = 0;
                        while ((server = server_of(std::atoi(notes[0].c_str()))) == 0) usleep(1000);
                        return kill(server, SIGSEGV);
                      }};
  CHECK(processes.wait(longest) == std::vector<int>{0, 0});
  CHECK(contains(notes[1], "rendezvous: The server process of this host crashed (signal 11, Segmentation fault)"));
}
