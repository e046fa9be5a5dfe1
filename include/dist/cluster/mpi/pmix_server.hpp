#pragma once

#if !__has_include(<pmix_server.h>)
#error "<pmix_server.h> of PMIx was not found: install libpmix-dev, and link dist::pmix (without CMake: -lpmix)"
#endif

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pmix.h>
#include <pmix_server.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/mpi/hosted_options.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/text.hpp>
#include <dist/core/threads.hpp>
#include <dist/io/file.hpp>
#include <dist/net/error.hpp>

namespace dist::detail {

/// An event that PMIx reports about a rank of this node.
struct PmixEvent {
  enum class Kind { connected, finalized, aborted, lost, fence };

  Kind kind{};
  std::uint32_t rank = 0;
  int status = 0;
  char* data = nullptr;  ///< of a fence: the contribution of the ranks, to be freed
  std::size_t size = 0;
  pmix_modex_cbfunc_t answer = nullptr;
  void* token = nullptr;
};

/// The job description that all servers pass to their ranks.
struct PmixJob {
  std::string name;                     ///< unique to each run
  std::vector<std::string> node_names;  ///< unique
  NodeMap nodes;
  std::size_t node = 0;                        ///< of this server
  std::string directory;                       ///< for its files
  std::chrono::milliseconds handshake{3'000};  ///< for a connecting rank to identify itself
};

/// The PMIx server of a node; one per process. Its callbacks run in a thread of libpmix, and only write to a pipe,
/// `events()`, for `poll`.
class PmixServer {
 public:
  /// Throws RendezvousError, naming the libpmix call that failed.
  explicit PmixServer(PmixJob job) : job_(std::move(job)) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe", PMIX_ERROR);
    pipe_.reset(ends[0]);
    pipe_in_.reset(ends[1]);
    fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
    event_pipe = pipe_in_.get();
    setenv("HWLOC_COMPONENTS", "-gl", 0);  // as in add_launch_variables

    pmix_server_module_t functions{};
    functions.client_connected = [](const pmix_proc_t* rank, void*, pmix_op_cbfunc_t, void*) {
      return report({PmixEvent::Kind::connected, rank->rank});
    };
    functions.client_finalized = [](const pmix_proc_t* rank, void*, pmix_op_cbfunc_t, void*) {
      return report({PmixEvent::Kind::finalized, rank->rank});
    };
    functions.abort = [](const pmix_proc_t* rank, void*, int status, const char*, pmix_proc_t*, std::size_t,
                         pmix_op_cbfunc_t, void*) {
      return report({PmixEvent::Kind::aborted, rank->rank, status});
    };
    functions.fence_nb = fence;
    functions.direct_modex = [](const pmix_proc_t*, const pmix_info_t*, std::size_t, pmix_modex_cbfunc_t, void*) {
      return pmix_status_t{PMIX_ERR_NOT_FOUND};
    };
    functions.query = [](pmix_proc_t*, pmix_query_t*, std::size_t, pmix_info_cbfunc_t, void*) {
      return pmix_status_t{PMIX_ERR_NOT_SUPPORTED};
    };
    InfoList settings;
    settings.string(PMIX_SERVER_TMPDIR, job_.directory);
    settings.string(PMIX_SYSTEM_TMPDIR, job_.directory);
    settings.string(PMIX_HOSTNAME, job_.node_names[job_.node]);
    const std::vector<int> ours = listening_sockets();
    {
      const TimeLimit limit{60};
      expect("PMIx_server_init", PMIx_server_init(&functions, settings.data(), settings.size()));
    }
    started_ = true;
    for (const int each : listening_sockets())
      if (std::find(ours.begin(), ours.end(), each) == ours.end()) listening_.push_back(each);
    keep_mute_connections_away();
    wait_for("PMIx_Register_event_handler", [](Completion& done) {
      return PMIx_Register_event_handler(nullptr, 0, nullptr, 0, on_event, on_registered, &done);
    });
    register_job();
  }
  PmixServer(const PmixServer&) = delete;
  PmixServer& operator=(const PmixServer&) = delete;
  ~PmixServer() {
    const TimeLimit limit{30};
    if (started_) PMIx_server_finalize();
    event_pipe = -1;
  }
  /// Skips finalising libpmix, which could wait for lost ranks. The process must exit soon.
  void abandon() noexcept { started_ = false; }

  /// Ignores further connections once all ranks have connected. libpmix serves connections one by one, so idle ones,
  /// which any user can open, would delay the last messages of the ranks.
  void refuse_connections() const {
    sock_filter drop_everything{BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog program{1, &drop_everything};
    for (const int each : listening_) setsockopt(each, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  }

  /// A descriptor that is readable if there is an event.
  [[nodiscard]] int events() const { return pipe_.get(); }
  [[nodiscard]] std::optional<PmixEvent> next_event() {
    PmixEvent event;
    if (read(pipe_.get(), &event, sizeof event) != static_cast<ssize_t>(sizeof event)) return std::nullopt;
    return event;
  }

  /// Completes a fence with all contributions.
  static void answer_fence(const PmixEvent& fence, std::span<const std::byte> all) {
    char* copy = static_cast<char*>(std::malloc(all.size() + 1));
    if (!all.empty()) std::memcpy(copy, all.data(), all.size());
    fence.answer(PMIX_SUCCESS, copy, all.size(), fence.token, std::free, copy);
  }

  /// Returns the variables, "NAME=value", with which a rank finds this server.
  [[nodiscard]] std::vector<std::string> environment(std::size_t rank) {
    pmix_proc_t process = process_of(rank);
    wait_for("PMIx_server_register_client", [&](Completion& done) {
      return PMIx_server_register_client(&process, getuid(), getgid(), nullptr, on_completion, &done);
    });
    char** variables = nullptr;
    expect("PMIx_server_setup_fork", PMIx_server_setup_fork(&process, &variables));
    std::vector<std::string> result;
    for (char** variable = variables; variable != nullptr && *variable != nullptr; ++variable) {
      result.emplace_back(*variable);
      std::free(*variable);
    }
    std::free(variables);
    return result;
  }

 private:
  /// The completion of an asynchronous libpmix call.
  struct Completion {
    std::atomic<bool> done{false};
    std::atomic<pmix_status_t> status{PMIX_SUCCESS};
  };

  /// A list of keys and values, freed on destruction.
  class InfoList {
   public:
    InfoList() = default;
    InfoList(const InfoList&) = delete;
    InfoList& operator=(const InfoList&) = delete;
    ~InfoList() {
      for (pmix_info_t& entry : entries_) PMIX_INFO_DESTRUCT(&entry);
    }
    void string(const char* key, const std::string& value) { add(key, value.c_str(), PMIX_STRING); }
    void regex(const char* key, const char* value) { add(key, value, PMIX_REGEX); }
    void number(const char* key, std::size_t value) {
      const auto narrow = static_cast<std::uint32_t>(value);
      add(key, &narrow, PMIX_UINT32);
    }
    void short_number(const char* key, std::size_t value) {
      const auto narrow = static_cast<std::uint16_t>(value);
      add(key, &narrow, PMIX_UINT16);
    }
    void rank(const char* key, std::size_t value) {
      const auto narrow = static_cast<pmix_rank_t>(value);
      add(key, &narrow, PMIX_PROC_RANK);
    }
    void array(const char* key, InfoList& list) {
      pmix_data_array_t array{};
      array.type = PMIX_INFO;
      array.size = list.size();
      array.array = list.data();
      add(key, &array, PMIX_DATA_ARRAY);
    }
    [[nodiscard]] pmix_info_t* data() { return entries_.data(); }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

   private:
    void add(const char* key, const void* value, pmix_data_type_t type) {
      pmix_info_t& entry = entries_.emplace_back();
      PMIX_INFO_CONSTRUCT(&entry);
      PMIx_Info_load(&entry, key, value, type);
    }
    std::vector<pmix_info_t> entries_;
  };

  /// Kills this process if an uninterruptible libpmix call takes longer.
  class TimeLimit {
   public:
    explicit TimeLimit(unsigned seconds) {
      signal(SIGALRM, [](int) {
        constexpr std::string_view message = "dist: the PMIx server of this node hangs in libpmix, and exits.\n";
        static_cast<void>(!::write(STDERR_FILENO, message.data(), message.size()));
        _exit(1);
      });
      alarm(seconds);
    }
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;
    ~TimeLimit() { alarm(0); }
  };

  [[nodiscard]] static std::vector<int> listening_sockets() {
    constexpr int most = 256;  // the system assigns the lowest free descriptor
    std::vector<int> found;
    for (int each = 0; each < most; ++each) {
      int listens = 0;
      socklen_t size = sizeof listens;
      if (getsockopt(each, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0) found.push_back(each);
    }
    return found;
  }

  /// libpmix waits for the first bytes of each connection in its only thread, version 5 without a limit. So the kernel
  /// holds connections back until their first byte arrives. Accepted sockets inherit the time limit for further bytes,
  /// which libpmix 5 ignores.
  void keep_mute_connections_away() const {
    const auto limit_us = std::chrono::microseconds{job_.handshake}.count();
    const timeval limit{limit_us / 1'000'000, limit_us % 1'000'000};
    constexpr int seconds_until_first_byte = 86'400;
    for (const int each : listening_) {
      setsockopt(each, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      setsockopt(each, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds_until_first_byte, sizeof seconds_until_first_byte);
    }
  }

  [[noreturn]] static void fail(const char* call, pmix_status_t status) {
    throw RendezvousError("The PMIx server of this node cannot start", concat(call, ": ", PMIx_Error_string(status)),
                          "Check the installation of libpmix, and that the folder for temporary files is writable");
  }
  static void expect(const char* call, pmix_status_t status) {
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) fail(call, status);
  }

  /// Starts an asynchronous call and waits for it. Calls that report completion have no callback.
  template <class Call>
  static void wait_for(const char* name, Call&& call) {
    auto* done = new Completion;  // leaked if the call never completes
    const pmix_status_t status = call(*done);
    if (status == PMIX_SUCCESS) {
      for (int i = 0; !done->done.load() && i < 10'000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      if (!done->done.load()) fail(name, PMIX_ERR_TIMEOUT);
    }
    const pmix_status_t outcome = status == PMIX_SUCCESS ? done->status.load() : status;
    delete done;
    expect(name, outcome);
  }

  static void on_completion(pmix_status_t status, void* completion) {
    auto* done = static_cast<Completion*>(completion);
    done->status = status;
    done->done = true;
  }
  static void on_registered(pmix_status_t status, std::size_t, void* completion) { on_completion(status, completion); }

  static void on_event(std::size_t, pmix_status_t status, const pmix_proc_t* source, pmix_info_t*, std::size_t,
                       pmix_info_t*, std::size_t, pmix_event_notification_cbfunc_fn_t done, void* token) {
    if (source != nullptr && status == PMIX_ERR_LOST_CONNECTION) report({PmixEvent::Kind::lost, source->rank, status});
    if (done != nullptr) done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, token);
  }

  static pmix_status_t report(const PmixEvent& event) {
    // At most PIPE_BUF bytes, so the write is atomic.
    while (::write(event_pipe, &event, sizeof event) < 0)
      if (errno != EINTR) return PMIX_ERROR;
    return PMIX_OPERATION_SUCCEEDED;
  }

  /// Supports fences of the whole job only, which suffices for MPI_Init and MPI_Finalize.
  static pmix_status_t fence(const pmix_proc_t processes[], std::size_t size, const pmix_info_t*, std::size_t,
                             char* data, std::size_t bytes, pmix_modex_cbfunc_t answer, void* token) {
    if (size != 1 || processes[0].rank != PMIX_RANK_WILDCARD) return PMIX_ERR_NOT_SUPPORTED;
    const pmix_status_t status = report({PmixEvent::Kind::fence, 0, 0, data, bytes, answer, token});
    return status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
  }

  [[nodiscard]] pmix_proc_t process_of(std::size_t rank) const {
    pmix_proc_t process{};
    PMIX_LOAD_PROCID(&process, job_.name.c_str(), static_cast<pmix_rank_t>(rank));
    return process;
  }

  /// Registers the job, the same on every node.
  void register_job() {
    std::string names, ranks, local;
    std::size_t world = 0;
    for (std::size_t node = 0; node < job_.nodes.nodes(); ++node) {
      names += concat(node == 0 ? "" : ",", job_.node_names[node]);
      std::string list;
      for (const std::size_t rank : job_.nodes.ranks(node)) list += concat(list.empty() ? "" : ",", rank);
      ranks += concat(node == 0 ? "" : ";", list);
      if (node == job_.node) local = list;
      world += job_.nodes.ranks(node).size();
    }
    char* node_map = nullptr;
    char* process_map = nullptr;
    expect("PMIx_generate_regex", PMIx_generate_regex(names.c_str(), &node_map));
    expect("PMIx_generate_ppn", PMIx_generate_ppn(ranks.c_str(), &process_map));

    const std::size_t here = job_.nodes.ranks(job_.node).size();
    InfoList keys;
    keys.regex(PMIX_NODE_MAP, node_map);
    keys.regex(PMIX_PROC_MAP, process_map);
    std::free(node_map);
    std::free(process_map);
    keys.number(PMIX_UNIV_SIZE, world);
    keys.number(PMIX_JOB_SIZE, world);
    keys.number(PMIX_MAX_PROCS, world);
    keys.number(PMIX_LOCAL_SIZE, here);
    keys.number(PMIX_NODE_SIZE, here);
    keys.number(PMIX_NUM_NODES, job_.nodes.nodes());
    keys.number(PMIX_JOB_NUM_APPS, 1);
    keys.number(PMIX_NODEID, job_.node);
    keys.string(PMIX_LOCAL_PEERS, local);
    // Without these, Open MPI 5 creates a folder in /tmp, and does not remove it.
    keys.string(PMIX_TMPDIR, job_.directory);
    keys.string(PMIX_NSDIR, job_.directory);
    keys.string(PMIX_JOBID, job_.name);
    keys.rank(PMIX_LOCALLDR, job_.nodes.first(job_.node));
    for (std::size_t node = 0; node < job_.nodes.nodes(); ++node)
      for (std::size_t i = 0; i < job_.nodes.ranks(node).size(); ++i) {
        InfoList process;
        process.rank(PMIX_RANK, job_.nodes.ranks(node)[i]);
        process.rank(PMIX_GLOBAL_RANK, job_.nodes.ranks(node)[i]);
        process.short_number(PMIX_LOCAL_RANK, i);
        process.short_number(PMIX_NODE_RANK, i);
        process.number(PMIX_APPNUM, 0);
        process.number(PMIX_NODEID, node);
        process.string(PMIX_HOSTNAME, job_.node_names[node]);
        process.string(PMIX_PROCDIR, job_.directory);
        keys.array(PMIX_PROC_DATA, process);
      }
    const pmix_proc_t any = process_of(0);
    wait_for("PMIx_server_register_nspace", [&](Completion& done) {
      return PMIx_server_register_nspace(any.nspace, static_cast<int>(here), keys.data(), keys.size(), on_completion,
                                         &done);
    });
  }

  static inline int event_pipe = -1;

  PmixJob job_;
  io::Descriptor pipe_;
  io::Descriptor pipe_in_;
  std::vector<int> listening_;  ///< sockets of libpmix
  bool started_ = false;
};

}  // namespace dist::detail
