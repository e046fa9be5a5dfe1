#include <dist/cluster/mpi/pmix_server.hpp>

#include <doctest/doctest.h>

#include <poll.h>
#include <unistd.h>

#include <string>

#include <cluster/mpi/world_ranks.hpp>
#include <dist/cluster/mpi/session_folder.hpp>
#include <support/processes.hpp>

using dist::detail::PmixEvent;
using dist::detail::PmixServer;
using namespace dist_test;

namespace {

/// Returns the number of the job under `key`.
std::uint32_t job_number(const pmix_proc_t& me, const char* key) {
  pmix_proc_t job = me;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* value = nullptr;
  if (PMIx_Get(&job, key, nullptr, 0, &value) != PMIX_SUCCESS) return 999;
  const std::uint32_t number = value->data.uint32;
  PMIX_VALUE_RELEASE(value);
  return number;
}

/// A client: publishes its rank and reads the other's.
int client(std::size_t rank, const std::string& variables) {
  for (std::size_t begin = 0, end; (end = variables.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string variable = variables.substr(begin, end - begin);
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  pmix_proc_t me;
  if (PMIx_Init(&me, nullptr, 0) != PMIX_SUCCESS) return 10;
  if (me.rank != rank || std::string{me.nspace} != "a-job") return 11;
  if (job_number(me, PMIX_JOB_SIZE) != 2 || job_number(me, PMIX_LOCAL_SIZE) != 2) return 12;
  pmix_value_t mine;
  mine.type = PMIX_UINT32;
  mine.data.uint32 = 100 + me.rank;
  if (PMIx_Put(PMIX_GLOBAL, "test", &mine) != PMIX_SUCCESS || PMIx_Commit() != PMIX_SUCCESS) return 13;
  const bool collect = true;
  pmix_info_t info;
  PMIX_INFO_CONSTRUCT(&info);
  PMIx_Info_load(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  if (PMIx_Fence(nullptr, 0, &info, 1) != PMIX_SUCCESS) return 14;
  pmix_proc_t other = me;
  other.rank = 1 - me.rank;
  pmix_value_t* value = nullptr;
  if (PMIx_Get(&other, "test", nullptr, 0, &value) != PMIX_SUCCESS) return 15;
  if (value->data.uint32 != 100 + other.rank) return 16;
  return PMIx_Finalize(nullptr, 0) == PMIX_SUCCESS ? 0 : 17;
}

dist::detail::PmixJob job_in(const std::string& directory, milliseconds handshake) {
  return {"a-job", {"host-a"}, dist::NodeMap{{{"a", "1"}, {"a", "2"}}}, 0, directory, handshake};
}

/// With `mute`, a silent connection is opened first.
int serve(Notes& notes, bool mute) {
  const dist::detail::SessionFolder directory;
  PmixServer server{job_in(directory.path(), 500ms)};
  dist::io::Descriptor somebody;
  if (mute) somebody = mute_connection(server.environment(0));
  std::vector<std::string> of_rank;
  for (const std::size_t rank : {0U, 1U}) {
    std::string variables;
    of_rank = server.environment(rank);
    for (const std::string& variable : of_rank) variables += variable + '\n';
    notes.write(rank, variables);
  }
  notes.write(2, "ready");
  int connected = 0, finalized = 0;  // libpmix completes a fence of one node itself
  for (int i = 0; i < 2000 && finalized < 2; ++i) {
    pollfd entry{server.events(), POLLIN, 0};
    poll(&entry, 1, 10);
    while (const std::optional<PmixEvent> event = server.next_event()) {
      if (event->kind == PmixEvent::Kind::connected && ++connected == 2) {
        if (!try_mute_connection(of_rank)) return 2;
        server.refuse_connections();
        if (try_mute_connection(of_rank)) return 3;
      }
      if (event->kind == PmixEvent::Kind::finalized) ++finalized;
    }
  }
  usleep(200'000);
  usleep(200'000);  // for the replies to PMIx_Finalize
  return connected == 2 && finalized == 2 ? 0 : 1;
}

}  // namespace

TEST_CASE("two clients find their job and each other's data, and leave orderly, even with a silent connection") {
  for (const bool mute : {false, true}) {
    CAPTURE(mute);
    Notes notes{3};
    support::Processes processes{3, [&](std::size_t process) {
                                   if (process == 2) return serve(notes, mute);
                                   for (int i = 0; i < 10'000 && notes[2].empty(); ++i) usleep(1000);
                                   return client(process, notes[process]);
                                 }};
    const std::vector<int> statuses = processes.wait();
    for (const std::size_t process : {0U, 1U, 2U}) {
      CAPTURE(process);
      CHECK(statuses[process] == 0);
    }
  }
}

TEST_CASE("a server that hangs in libpmix kills itself") {
  support::Processes process{1, [](std::size_t) {
                               const dist::detail::SessionFolder directory;
                               dist::io::Descriptor somebody;
                               PmixServer server{job_in(directory.path(), 60s)};
                               somebody = mute_connection(server.environment(0));
                               if (write(somebody.get(), "?", 1) != 1) return 2;
                               usleep(100'000);  // until libpmix waits for the rest
                               return 0;
                             }};
  CHECK(process.wait() == std::vector<int>{1});
}
