// The NCCL functions that the library calls.
#include <fcntl.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dist/core/float16.hpp>

#include "../fake_cuda/call.hpp"
#include "../fake_cuda/device_memory.hpp"
#include "../fake_cuda/handles.hpp"
#include "../fake_cuda/scheduler.hpp"
#include "../fake_cuda/thread_sanitizer.hpp"
#include "machine.hpp"
#include "nccl_device.h"
#include "shared_clique.hpp"

namespace {

using fake_cuda::OperationRef;
using fake_cuda::refuse;

enum class Kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send, receive };

bool is_message(Kind kind) { return kind == Kind::send || kind == Kind::receive; }

/// A call of one rank.
struct Call {
  Kind kind;
  std::string name;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;  // or the peer of a message

  [[nodiscard]] bool agrees_with(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op && root == other.root;
  }
};

/// A collective of the ranks, with the data that each sends.
struct Collective {
  std::vector<const Call*> calls;
  std::vector<std::unique_ptr<Call>> owned;
  std::vector<std::vector<std::byte>> brought;
  std::vector<OperationRef> arrivals;
  std::size_t came = 0;
  std::size_t delivered = 0;
  bool is_ended = false;  // by an abort
};

/// A message between two ranks: the calls of both ends, and the sender's values.
struct Message {
  std::unique_ptr<const Call> ends[2];  // of Kind::send, of Kind::receive
  bool has_come[2] = {};
  std::vector<std::byte> values;
  OperationRef sending;
};
/// The messages from one rank to another. Each end counts its messages.
struct Channel {
  std::uint64_t next[2] = {};
  std::map<std::uint64_t, std::shared_ptr<Message>> under_way;
};

struct Clique {
  int ranks = 0;
  std::vector<ncclComm*> members;                                  // by rank; null if absent
  std::vector<std::size_t> next;                                   // next collective per rank
  std::map<std::size_t, std::shared_ptr<Collective>> collectives;  // in progress, by number
  std::map<std::pair<int, int>, Channel> channels;                 // by sender and receiver
  std::size_t came_here = 0;                                       // ranks in this process
  std::unique_ptr<fake_nccl::SharedClique> shared;                 // shared with other processes
  bool is_ended = false;                                           // by an abort

  [[nodiscard]] bool is_here() const { return came_here == static_cast<std::size_t>(ranks); }
};

struct Pending {
  ncclComm* comm;
  Call call;
  cudaStream_t stream;
};

/// One rank's progress in a call of the processes of all ranks.
struct HostCall {
  enum Kind : std::uint64_t { window = 1, device_communicator = 2 };
  std::string name;
  fake_nccl::SharedHostCall mine;
  ncclWindow_t* made_window = nullptr;
  ncclDevComm* made_communicator = nullptr;
  enum { begun, come, left } stage = begun;
};

struct Window {
  ncclComm* comm;
  void* memory;
  std::vector<void*> mapped;  // from other processes
};

struct Failure {
  ncclResult_t error;
  int calls_until;
};

fake_nccl::Options chosen;
std::map<std::string, Failure, std::less<>> failures;
std::map<std::string, void (*)(), std::less<>> acts;
Failure later{ncclSuccess, 0};
std::map<std::string, int, std::less<>> counted;
std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id
std::set<ncclComm*> live;
std::map<ncclWindow_t, Window> windows;
thread_local int depth = 0;
thread_local std::vector<Pending> in_group;
thread_local std::vector<ncclComm*> joined_in_group;
thread_local std::string last_error;

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  int polls = 0;  // until it leaves ncclInProgress
  bool is_joining = true;
  bool is_finalized = false;  // and polled until it was over
  bool is_finalizing = false;
  ncclResult_t error = ncclSuccess;
  std::vector<Pending> waiting;  // to be submitted to its stream
  std::vector<OperationRef> put;
  std::thread::id user{};
  std::optional<HostCall> host_call;
  std::uint64_t host_calls = 0;  // completed ones
  int device_communicators = 0;
  bool is_revoked = false;
};

namespace {

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
    case ncclUint64:
      return 8;
    case ncclFloat32:
    case ncclInt32:
    case ncclUint32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

/// A call in the machine, with the failures that the test has requested.
template <class Body>
ncclResult_t call(std::string_view function, Body&& body) {
  ncclResult_t answer = ncclSuccess;
  const cudaError_t of_machine = fake_cuda::call(function, [&] {
    ++counted[std::string(function)];
    if (const auto act = acts.find(function); act != acts.end()) {
      const auto function_of_test = act->second;
      acts.erase(act);
      function_of_test();
    }
    const auto failure = failures.find(function);
    if (failure != failures.end() && --failure->second.calls_until <= 0) {
      answer = failure->second.error;
      failures.erase(failure);
      last_error = "the test asked for it";
      if (function == "ncclGroupEnd") {  // the group is discarded
        depth = 0;
        in_group.clear();
        joined_in_group.clear();
      }
    } else {
      answer = body();
    }
    return cudaSuccess;
  });
  return of_machine == cudaSuccess ? answer : ncclUnhandledCudaError;
}

ncclComm& require_live(ncclComm* comm, std::string_view function) {
  if (!live.contains(comm))
    refuse(std::string(function) + " of a communicator that is not there: never made, destroyed, or aborted");
  return *comm;
}
bool is_in_progress(const ncclComm& comm) {
  return comm.error == ncclSuccess && (comm.polls > 0 || !comm.waiting.empty() || comm.host_call || comm.is_joining ||
                                       (comm.is_finalizing && !comm.is_finalized));
}
/// Requires a communicator without pending calls.
ncclComm& require_usable(ncclComm* comm, std::string_view function) {
  ncclComm& usable = require_live(comm, function);
  if (usable.is_revoked) refuse(std::string(function) + " of a communicator that is revoked: it can only be aborted");
  if (is_in_progress(usable))
    refuse(std::string(function) + " of a communicator that is in progress: ask ncclCommGetAsyncError until it is not");
  return usable;
}

template <class T>
T combine(ncclRedOp_t op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (op == ncclSum) return static_cast<T>(static_cast<std::uint64_t>(static_cast<U>(a)) + static_cast<U>(b));
    if (op == ncclProd) return static_cast<T>(static_cast<std::uint64_t>(static_cast<U>(a)) * static_cast<U>(b));
    return op == ncclMin ? std::min(a, b) : std::max(a, b);
  } else {
    const auto x = static_cast<double>(static_cast<float>(a)), y = static_cast<double>(static_cast<float>(b));
    if constexpr (std::is_same_v<T, double>) {
      if (op == ncclSum) return a + b;
      if (op == ncclProd) return a * b;
      return op == ncclMin ? std::fmin(a, b) : std::fmax(a, b);
    } else {
      const double result = op == ncclSum    ? x + y
                            : op == ncclProd ? x * y
                            : op == ncclMin  ? std::fmin(x, y)
                                             : std::fmax(x, y);
      return static_cast<T>(static_cast<float>(result));
    }
  }
}

/// Reduces in an order whose first rank depends on the element, like a ring: the same on all ranks.
template <class T>
void reduce_as(const Collective& together, std::size_t first, std::size_t count, std::byte* to) {
  const std::size_t ranks = together.brought.size();
  const auto value = [&](std::size_t rank, std::size_t i) {
    T element;
    std::memcpy(&element, together.brought[rank].data() + i * sizeof(T), sizeof(T));
    return element;
  };
  for (std::size_t i = first; i < first + count; ++i) {
    const std::size_t start = (i / 7 + 1) % ranks;
    T result = value(start, i);
    for (std::size_t step = 1; step < ranks; ++step)
      result = combine(together.calls[0]->op, result, value((start + step) % ranks, i));
    std::memcpy(to + (i - first) * sizeof(T), &result, sizeof(T));
  }
}
void reduce(const Collective& together, std::size_t first, std::size_t count, std::byte* to) {
  switch (together.calls[0]->type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(together, first, count, to);
    case ncclUint8:
      return reduce_as<std::uint8_t>(together, first, count, to);
    case ncclInt32:
      return reduce_as<std::int32_t>(together, first, count, to);
    case ncclUint32:
      return reduce_as<std::uint32_t>(together, first, count, to);
    case ncclInt64:
      return reduce_as<std::int64_t>(together, first, count, to);
    case ncclUint64:
      return reduce_as<std::uint64_t>(together, first, count, to);
    case ncclFloat16:
      return reduce_as<dist::Float16>(together, first, count, to);
    case ncclBfloat16:
      return reduce_as<dist::BFloat16>(together, first, count, to);
    case ncclFloat32:
      return reduce_as<float>(together, first, count, to);
    case ncclFloat64:
      return reduce_as<double>(together, first, count, to);
    default:
      refuse("NCCL is asked to reduce a type that the fake does not have");
  }
}

std::size_t sent_bytes(const Call& of, int rank, int ranks) {
  const std::size_t each = of.count * size_of(of.type);
  if (of.kind == Kind::broadcast) return rank == of.root ? each : 0;
  if (of.kind == Kind::receive) return 0;
  return of.kind == Kind::reduce_scatter ? each * static_cast<std::size_t>(ranks) : each;
}
std::size_t received_bytes(const Call& of, int rank, int ranks) {
  const std::size_t each = of.count * size_of(of.type);
  if (of.kind == Kind::reduce) return rank == of.root ? each : 0;
  if (of.kind == Kind::send) return 0;
  return of.kind == Kind::all_gather ? each * static_cast<std::size_t>(ranks) : each;
}

std::vector<std::byte> result_of(const Collective& together, int rank) {
  const Call& of = *together.calls[static_cast<std::size_t>(rank)];
  const int ranks = static_cast<int>(together.brought.size());
  std::vector<std::byte> result(received_bytes(of, rank, ranks));
  if (result.empty()) return result;
  switch (of.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      reduce(together, 0, of.count, result.data());
      break;
    case Kind::reduce_scatter:
      reduce(together, static_cast<std::size_t>(rank) * of.count, of.count, result.data());
      break;
    case Kind::broadcast:
      result = together.brought[static_cast<std::size_t>(of.root)];
      break;
    case Kind::all_gather:
      result.clear();
      for (const auto& part : together.brought) result.insert(result.end(), part.begin(), part.end());
      break;
    case Kind::send:
    case Kind::receive:
      break;
  }
  return result;
}

void require_buffers(const Call& of, const ncclComm& comm) {
  const auto require = [&](const void* first, std::size_t bytes, std::string_view which) {
    if (bytes == 0) return;
    if (!fake_cuda::is_device_memory(first, bytes) || fake_cuda::allocation_at(first)->device != comm.device)
      refuse(of.name + ": what rank " + std::to_string(comm.rank) + " " + std::string(which) + ", " +
             std::to_string(bytes) + " bytes, is not in one allocation of GPU " + std::to_string(comm.device) + ": " +
             fake_cuda::place_of(first));
  };
  require(of.send, sent_bytes(of, comm.rank, comm.clique->ranks), "sends");
  require(of.receive, received_bytes(of, comm.rank, comm.clique->ranks), "receives");
}

CUstream_st& stream_of(const Pending& pending) {
  const ncclComm& comm = *pending.comm;
  CUstream_st& stream = fake_cuda::handles().stream(pending.stream, pending.call.name);
  if (stream.device != comm.device)
    refuse(pending.call.name + " of rank " + std::to_string(comm.rank) + " on a stream of another GPU than its own");
  if (stream.capture != nullptr) refuse(pending.call.name + " in a capture, which the fake NCCL does not have");
  return stream;
}

[[noreturn]] void refuse_different(std::size_t other, std::string_view called, std::size_t count, std::size_t rank,
                                   const Call& mine) {
  refuse("ranks " + std::to_string(other) + " and " + std::to_string(rank) + " make different calls: " +
         std::string(called) + " of " + std::to_string(count) + ", " + mine.name + " of " + std::to_string(mine.count));
}

/// A thread that runs GPU work while no host polls, if ranks wait for other processes.
class Progress {
 public:
  Progress() : thread_([this] { go_on(); }) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    is_over_.store(true);
    thread_.join();
  }

 private:
  void go_on() {
    while (!is_over_.load()) {
      {
        const fake_cuda::UnseenCall unseen;
        const std::lock_guard lock{fake_cuda::machine_mutex()};
        fake_cuda::let_run();
      }
      std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
  }

  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

/// Submits a collective whose ranks are in several processes.
void put_between_processes(const Pending& pending) {
  static const Progress progress;
  ncclComm& comm = *pending.comm;
  const std::shared_ptr<Clique> clique = comm.clique;
  CUstream_st& stream = stream_of(pending);
  const auto rank = static_cast<std::size_t>(comm.rank);
  const std::uint64_t number = clique->next[rank]++;
  const auto mine = std::make_shared<const Call>(pending.call);
  const std::string name = mine->name + " of rank " + std::to_string(rank);
  const std::size_t sent = sent_bytes(*mine, comm.rank, clique->ranks);
  const fake_nccl::SharedCall described{static_cast<int>(mine->kind), static_cast<std::int64_t>(mine->count),
                                        mine->type, mine->op, mine->root};

  OperationRef arrival = fake_cuda::next_operation(stream, name);
  arrival->addresses = {mine->send, mine->receive};
  arrival->ready = [clique, number] { return clique->is_ended || clique->shared->may_bring(number); };
  arrival->work = std::make_shared<const std::function<void()>>([clique, number, mine, rank, sent, described] {
    fake_cuda::reads(mine->send, sent);
    const fake_cuda::UnseenAccesses unseen;
    if (!clique->is_ended)
      clique->shared->bring(rank, number, described, {static_cast<const std::byte*>(mine->send), sent});
  });
  fake_cuda::put_on(stream, arrival);

  OperationRef delivery = fake_cuda::next_operation(stream, name);
  delivery->addresses = {mine->send, mine->receive};
  delivery->ready = [clique, number] { return clique->is_ended || clique->shared->have_all_brought(number); };
  const std::size_t received = received_bytes(*mine, comm.rank, clique->ranks);
  delivery->work = std::make_shared<const std::function<void()>>([clique, number, mine, rank, received, described] {
    fake_cuda::writes(mine->receive, received);
    const fake_cuda::UnseenAccesses unseen;
    if (clique->is_ended) {
      if (received != 0) std::memset(mine->receive, 0xAB, received);
      return;
    }
    Collective together;
    for (std::size_t other = 0; other < static_cast<std::size_t>(clique->ranks); ++other) {
      const fake_nccl::SharedCall& call = clique->shared->call_of(other, number);
      if (call != described)
        refuse_different(other, "call " + std::to_string(call.kind), static_cast<std::size_t>(call.count), rank, *mine);
      const std::span<const std::byte> brought = clique->shared->brought_by(other, number);
      together.brought.emplace_back(brought.begin(), brought.end());
      together.calls.push_back(mine.get());
    }
    const std::vector<std::byte> result = result_of(together, static_cast<int>(rank));
    if (received != 0) std::memcpy(mine->receive, result.data(), received);
    clique->shared->take(rank, number);
  });
  comm.put.push_back(delivery);
  fake_cuda::put_on(stream, delivery);
}

/// Submits two operations to the rank's stream: one reads its input; when all ranks have arrived, one writes its
/// output.
void put(const Pending& pending) {
  ncclComm& comm = *pending.comm;
  const std::shared_ptr<Clique> clique = comm.clique;
  if (!clique->is_here()) return put_between_processes(pending);
  const auto rank = static_cast<std::size_t>(comm.rank);
  CUstream_st& stream = stream_of(pending);
  const std::size_t number = clique->next[rank]++;
  std::shared_ptr<Collective>& together = clique->collectives[number];
  if (together == nullptr) {
    together = std::make_shared<Collective>();
    const auto ranks = static_cast<std::size_t>(clique->ranks);
    together->calls.resize(ranks);
    together->brought.resize(ranks);
    together->arrivals.resize(ranks);
  }
  together->owned.push_back(std::make_unique<Call>(pending.call));
  const Call* const mine = together->owned.back().get();
  for (std::size_t other = 0; other < together->calls.size(); ++other)
    if (together->calls[other] != nullptr && !together->calls[other]->agrees_with(*mine))
      refuse_different(other, together->calls[other]->name, together->calls[other]->count, rank, *mine);
  together->calls[rank] = mine;
  const std::shared_ptr<Collective> held = together;
  const std::string name = mine->name + " of rank " + std::to_string(rank);
  const std::size_t sent = sent_bytes(*mine, comm.rank, clique->ranks);

  OperationRef arrival = fake_cuda::next_operation(stream, name);
  arrival->addresses = {mine->send, mine->receive};
  arrival->work = std::make_shared<const std::function<void()>>([held, mine, rank, sent] {
    fake_cuda::reads(mine->send, sent);
    const fake_cuda::UnseenAccesses unseen;
    held->brought[rank].resize(sent);
    if (sent != 0) std::memcpy(held->brought[rank].data(), mine->send, sent);
    ++held->came;
  });
  held->arrivals[rank] = arrival;
  fake_cuda::put_on(stream, arrival);

  OperationRef delivery = fake_cuda::next_operation(stream, name);
  delivery->addresses = {mine->send, mine->receive};
  delivery->ready = [held] { return held->is_ended || held->came == held->calls.size(); };
  const std::size_t received = received_bytes(*mine, comm.rank, clique->ranks);
  delivery->work = std::make_shared<const std::function<void()>>([clique, number, held, mine, rank, received] {
    if (!held->is_ended)
      for (const OperationRef& each : held->arrivals) each->end.follow();
    fake_cuda::writes(mine->receive, received);
    const fake_cuda::UnseenAccesses unseen;
    if (++held->delivered == held->calls.size()) clique->collectives.erase(number);
    if (received == 0) return;
    if (held->is_ended) {
      std::memset(mine->receive, 0xAB, received);
    } else {
      const std::vector<std::byte> result = result_of(*held, static_cast<int>(rank));
      std::memcpy(mine->receive, result.data(), received);
    }
  });
  comm.put.push_back(delivery);
  fake_cuda::put_on(stream, delivery);
}

[[noreturn]] void refuse_message(int from, int to, std::int64_t sent, std::int64_t received) {
  refuse("rank " + std::to_string(from) + " sends " + std::to_string(sent) + " elements to rank " + std::to_string(to) +
         ", which receives " + std::to_string(received) + ", or elements of another type");
}

/// One end of a message: of Kind::send or Kind::receive.
struct End {
  Call call;
  int from, to;
  std::uint64_t number;
  std::shared_ptr<Message> message;  // if both ends are in this process

  [[nodiscard]] bool is_sent() const { return call.kind == Kind::send; }
  [[nodiscard]] std::size_t bytes() const { return call.count * size_of(call.type); }
  [[nodiscard]] fake_nccl::SharedCall described() const {
    return {0, static_cast<std::int64_t>(call.count), call.type, 0, 0};
  }
};

/// Submits the messages of one call or group of a rank. Two operations on its stream: one reads its input; when the
/// peers have received it and sent theirs, one writes its output.
void put_messages(const std::vector<Pending>& calls) {
  ncclComm& comm = *calls.front().comm;
  const std::shared_ptr<Clique> clique = comm.clique;
  const bool is_here = clique->is_here();
  if (!is_here) static const Progress progress;
  CUstream_st& stream = stream_of(calls.front());
  const auto ends = std::make_shared<std::vector<End>>();
  std::vector<const void*> addresses;
  for (const Pending& pending : calls) {
    if (&stream_of(pending) != &stream)
      refuse(pending.call.name + " of one group on two streams, which the fake has not");
    const bool is_sent = pending.call.kind == Kind::send;
    End end{pending.call, is_sent ? comm.rank : pending.call.root, is_sent ? pending.call.root : comm.rank, 0, nullptr};
    Channel& channel = clique->channels[{end.from, end.to}];
    end.number = channel.next[is_sent ? 0 : 1]++;
    if (is_here) {
      std::shared_ptr<Message>& message = channel.under_way[end.number];
      if (message == nullptr) message = std::make_shared<Message>();
      end.message = message;
      message->ends[is_sent ? 0 : 1] = std::make_unique<const Call>(end.call);
      if (message->ends[0] != nullptr && message->ends[1] != nullptr) {
        const Call& sent = *message->ends[0];
        const Call& received = *message->ends[1];
        if (sent.count != received.count || sent.type != received.type)
          refuse_message(end.from, end.to, static_cast<std::int64_t>(sent.count),
                         static_cast<std::int64_t>(received.count));
        channel.under_way.erase(end.number);
      }
    }
    addresses.push_back(is_sent ? end.call.send : end.call.receive);
    ends->push_back(std::move(end));
  }
  const std::string name = "messages of rank " + std::to_string(comm.rank);

  OperationRef arrival = fake_cuda::next_operation(stream, name);
  arrival->addresses = addresses;
  if (!is_here)
    arrival->ready = [clique, ends] {
      return clique->is_ended || std::all_of(ends->begin(), ends->end(), [&](const End& end) {
               return !end.is_sent() || clique->shared->may_send(static_cast<std::size_t>(end.from),
                                                                 static_cast<std::size_t>(end.to), end.number);
             });
    };
  arrival->work = std::make_shared<const std::function<void()>>([clique, ends] {
    for (const End& end : *ends)
      if (end.is_sent()) fake_cuda::reads(end.call.send, end.bytes());
    const fake_cuda::UnseenAccesses unseen;
    if (clique->is_ended) return;
    for (const End& end : *ends) {
      const auto from = static_cast<std::size_t>(end.from), to = static_cast<std::size_t>(end.to);
      const std::span values{static_cast<const std::byte*>(end.call.send), end.is_sent() ? end.bytes() : 0};
      if (end.message != nullptr) {
        end.message->has_come[end.is_sent() ? 0 : 1] = true;
        if (end.is_sent()) end.message->values.assign(values.begin(), values.end());
      } else if (end.is_sent()) {
        clique->shared->send(from, to, end.number, end.described(), values);
      } else {
        clique->shared->come_for(from, to, end.number);
      }
    }
  });
  for (const End& end : *ends)
    if (end.message != nullptr && end.is_sent()) end.message->sending = arrival;
  fake_cuda::put_on(stream, arrival);

  OperationRef delivery = fake_cuda::next_operation(stream, name);
  delivery->addresses = addresses;
  delivery->ready = [clique, ends] {
    return clique->is_ended || std::all_of(ends->begin(), ends->end(), [&](const End& end) {
             if (end.message != nullptr) return end.message->has_come[end.is_sent() ? 1 : 0];
             const auto from = static_cast<std::size_t>(end.from), to = static_cast<std::size_t>(end.to);
             return end.is_sent() ? clique->shared->has_come_for(from, to, end.number)
                                  : clique->shared->is_sent(from, to, end.number);
           });
  };
  delivery->work = std::make_shared<const std::function<void()>>([clique, ends] {
    for (const End& end : *ends) {
      if (end.is_sent()) continue;
      if (!clique->is_ended && end.message != nullptr) end.message->sending->end.follow();
      fake_cuda::writes(end.call.receive, end.bytes());
    }
    const fake_cuda::UnseenAccesses unseen;
    for (const End& end : *ends) {
      if (end.is_sent() || end.bytes() == 0) continue;
      if (clique->is_ended) {
        std::memset(end.call.receive, 0xAB, end.bytes());
      } else if (end.message != nullptr) {
        std::memcpy(end.call.receive, end.message->values.data(), end.bytes());
      } else {
        const auto from = static_cast<std::size_t>(end.from), to = static_cast<std::size_t>(end.to);
        const fake_nccl::SharedCall& sent = clique->shared->call_of_message(from, to, end.number);
        if (sent != end.described())
          refuse_message(end.from, end.to, sent.count, static_cast<std::int64_t>(end.call.count));
        const std::span<const std::byte> values = clique->shared->message(from, to, end.number);
        std::memcpy(end.call.receive, values.data(), values.size());
        clique->shared->take_message(from, to, end.number);
      }
    }
  });
  comm.put.push_back(delivery);
  fake_cuda::put_on(stream, delivery);
}

/// Submits calls to streams in order; the messages of a rank together.
void put_all(std::vector<Pending> calls) {
  while (!calls.empty()) {
    const Pending first = calls.front();
    if (!is_message(first.call.kind)) {
      put(first);
      calls.erase(calls.begin());
      continue;
    }
    const auto others = std::stable_partition(calls.begin(), calls.end(), [&](const Pending& each) {
      return is_message(each.call.kind) && each.comm == first.comm;
    });
    put_messages({calls.begin(), others});
    calls.erase(calls.begin(), others);
  }
}

/// Submits the calls now, or once the communicator was polled often enough.
ncclResult_t start(std::vector<Pending>& calls) {
  ncclResult_t answer = ncclSuccess;
  for (const Pending& each : calls) each.comm->polls = chosen.polls;
  if (chosen.polls > 0) {
    for (Pending& each : calls) {
      each.comm->waiting.push_back(std::move(each));
      answer = ncclInProgress;
    }
    calls.clear();
  } else {
    put_all(std::exchange(calls, {}));
  }
  return answer;
}

/// Calls a collective, or sends or receives a message.
ncclResult_t collective(Kind kind, std::string_view name, const void* send, void* receive, std::size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root, ncclComm* comm, cudaStream_t stream) {
  return call(name, [&]() -> ncclResult_t {
    ncclComm& of = require_usable(comm, name);
    if (of.error != ncclSuccess) return of.error;
    if (of.is_finalizing) refuse(std::string(name) + " of a communicator that is finalized");
    if (root < 0 || root >= of.clique->ranks) return ncclInvalidArgument;
    if (is_message(kind) && root == of.rank)
      refuse(std::string(name) + " of rank " + std::to_string(root) + " and itself, which the fake NCCL does not have");
    if (op == ncclAvg) refuse(std::string(name) + " by ncclAvg, which divides what it adds");
    const Call made{kind, std::string(name), send, receive, count, type, op, root};
    require_buffers(made, of);
    std::vector<Pending> alone{{&of, made, stream}};
    if (later.calls_until > 0 && --later.calls_until == 0) of.error = later.error;
    if (depth > 0) {
      in_group.push_back(alone.front());
      return ncclSuccess;
    }
    for (const ncclComm* other : of.clique->members)
      if (other != nullptr && other != comm && other->user == std::this_thread::get_id())
        refuse(std::string(name) + ": one thread calls for several ranks outside a group, which waits for ever");
    of.user = std::this_thread::get_id();
    return start(alone);
  });
}

void end_collectives(Clique& clique) {
  clique.is_ended = true;
  clique.shared->abort();
  for (auto& [number, together] : clique.collectives) together->is_ended = true;
  fake_cuda::machine_changed().notify_all();
}

std::string key_of(const ncclUniqueId& id) { return {id.internal, sizeof(id.internal)}; }

/// Returns NCCL's identity of the thread's GPU: the host (NCCL_HOSTID) and the selected GPU.
std::uint64_t gpu_of_thread() {
  const char* const host = std::getenv("NCCL_HOSTID");
  const int gpu = fake_cuda::visible_devices()[static_cast<std::size_t>(fake_cuda::chosen_device())];
  return std::hash<std::string>{}(host == nullptr ? "" : host) * 64 + static_cast<std::uint64_t>(gpu);
}

/// Terminates the process if a pending operation uses memory to be freed.
void require_unused(std::string_view function, const void* first) {
  const auto* const end = static_cast<const std::byte*>(first) + fake_cuda::allocation_at(first)->bytes;
  if (const auto* const user = fake_cuda::pending_user(first, end))
    refuse(std::string(function) + " where " + describe(*user) + " has not used the memory yet: wait for it before");
}
/// Unmaps memory of other processes, and removes the window, whose addresses kernels may no longer use.
void forget_window(std::map<ncclWindow_t, Window>::iterator window, std::string_view function) {
  require_unused(function, window->first);
  require_unused(function, window->second.memory);
  for (void* const each : window->second.mapped) {
    require_unused(function, each);
    fake_cuda::release_memory(each);
  }
  fake_cuda::release_memory(window->first);
  windows.erase(window);
}
void forget_windows(const ncclComm* comm) {
  for (auto each = windows.begin(); each != windows.end();)
    if (const auto window = each++; window->second.comm == comm) forget_window(window, "ncclCommAbort");
}
auto window_of(const void* memory) {
  return std::find_if(windows.begin(), windows.end(), [&](const auto& each) { return each.second.memory == memory; });
}

/// Returns the address of another rank's memory in this process.
void* reach(const fake_nccl::SharedHostCall& of, Window& window) {
  if (of.process == static_cast<std::uint64_t>(getpid())) return reinterpret_cast<void*>(of.address);
  const std::string path = "/proc/" + std::to_string(of.process) + "/fd/" + std::to_string(of.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* const mapped = file < 0 ? nullptr : fake_cuda::map_file(file, of.bytes);
  if (mapped == nullptr) refuse("the fake NCCL cannot map the memory of a rank of another process");
  window.mapped.push_back(mapped);
  return mapped;
}
/// Completes the call once all ranks have arrived.
void finish(ncclComm& comm, HostCall& call) {
  const Clique& clique = *comm.clique;
  for (int rank = 0; rank < clique.ranks; ++rank)
    if (!clique.shared->host_call_of(static_cast<std::size_t>(rank)).agrees_with(call.mine))
      refuse(call.name + ": rank " + std::to_string(rank) + " makes another call, or one for another number of bytes");
  if (call.made_communicator != nullptr) {
    const int size = chosen.lsa_size == 0 ? clique.ranks : chosen.lsa_size;
    *call.made_communicator = {comm.rank, clique.ranks, comm.rank % size, size};
    ++comm.device_communicators;
    return;
  }
  Window window{&comm, reinterpret_cast<void*>(call.mine.address), {}};
  ncclWindow_vidmem of_gpu{};
  for (int rank = 0; rank < clique.ranks; ++rank)
    of_gpu.first[rank] = reach(clique.shared->host_call_of(static_cast<std::size_t>(rank)), window);
  auto* const made = reinterpret_cast<ncclWindow_t>(fake_cuda::allocate_on(comm.device, sizeof of_gpu));
  if (made == nullptr) refuse(call.name + ": the GPU has no memory for a window");
  fake_cuda::write_memory(made, &of_gpu, sizeof of_gpu);
  windows.emplace(made, window);
  *call.made_window = made;
}
/// Advances a call of the processes as far as the others allow. Returns true if it is over.
bool advance_host_call(ncclComm& comm) {
  HostCall& call = *comm.host_call;
  const fake_nccl::SharedClique& shared = *comm.clique->shared;
  const auto rank = static_cast<std::size_t>(comm.rank);
  if (call.stage == HostCall::begun && shared.may_come_to(comm.host_calls)) {
    comm.clique->shared->come_to(comm.host_calls, rank, call.mine);
    call.stage = HostCall::come;
  }
  if (call.stage == HostCall::come && shared.have_all_come_to(comm.host_calls)) {
    finish(comm, call);
    comm.clique->shared->leave(comm.host_calls, rank);
    call.stage = HostCall::left;
  }
  if (call.stage != HostCall::left || !shared.may_come_to(comm.host_calls + 1)) return false;
  ++comm.host_calls;
  comm.host_call.reset();
  return true;
}
/// Returns ncclSuccess like NCCL, and is in progress until ncclCommGetAsyncError reports the end.
ncclResult_t begin_host_call(ncclComm& comm, HostCall call) {
  if (comm.error != ncclSuccess) return comm.error;
  if (comm.is_finalizing) refuse(call.name + " of a communicator that is finalized");
  if (depth > 0) refuse(call.name + " in a group, which the fake NCCL does not have");
  comm.polls = chosen.polls;
  comm.host_call = std::move(call);
  return ncclSuccess;
}

void forget(ncclComm* comm) {
  forget_windows(comm);
  live.erase(comm);
  comm->clique->members[static_cast<std::size_t>(comm->rank)] = nullptr;
  delete comm;
}

}  // namespace

namespace fake_nccl {

void restart(const Options& options) {
  static_cast<void>(fake_cuda::call("restart", [&] {
    chosen = options;
    failures.clear();
    acts.clear();
    later = {ncclSuccess, 0};
    counted.clear();
    cliques.clear();
    windows.clear();
    while (!live.empty()) forget(*live.begin());
    return cudaSuccess;
  }));
}
void fail_call(std::string_view function, ncclResult_t error, int nth) {
  static_cast<void>(fake_cuda::call("fail_call", [&] {
    return failures[std::string(function)] = {error, nth}, cudaSuccess;
  }));
}
void before_call(std::string_view function, void (*act)()) {
  static_cast<void>(fake_cuda::call("before_call", [&] { return acts[std::string(function)] = act, cudaSuccess; }));
}
void fail_later(ncclResult_t error, int nth) {
  static_cast<void>(fake_cuda::call("fail_later", [&] { return later = {error, nth}, cudaSuccess; }));
}
int calls(std::string_view function) {
  int count = 0;
  static_cast<void>(fake_cuda::call("calls", [&] { return count = counted[std::string(function)], cudaSuccess; }));
  return count;
}
std::size_t live_communicators() {
  std::size_t count = 0;
  static_cast<void>(fake_cuda::call("live_communicators", [&] { return count = live.size(), cudaSuccess; }));
  return count;
}
std::size_t live_windows() {
  std::size_t count = 0;
  static_cast<void>(fake_cuda::call("live_windows", [&] { return count = windows.size(), cudaSuccess; }));
  return count;
}
int open_groups() { return depth; }

}  // namespace fake_nccl

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  return call("ncclGetVersion", [&] { return *version = chosen.version, ncclSuccess; });
}
const char* ncclGetErrorString(ncclResult_t result) {
  constexpr std::array texts{"no error",
                             "unhandled cuda error",
                             "unhandled system error",
                             "internal error",
                             "invalid argument",
                             "invalid usage",
                             "remote process exited or there was a network error",
                             "NCCL operation in progress"};
  return static_cast<std::size_t>(result) < texts.size() ? texts[result] : "unknown result code";
}
const char* ncclGetLastError(ncclComm_t comm) {
  if (comm != nullptr) {
    const fake_cuda::UnseenCall unseen;
    const std::lock_guard lock{fake_cuda::machine_mutex()};
    require_live(comm, "ncclGetLastError");
  }
  return last_error.c_str();
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call("ncclGetUniqueId", [&] {
    const auto made = std::make_shared<Clique>();
    made->shared = std::make_unique<fake_nccl::SharedClique>();
    *id = made->shared->id();
    cliques[key_of(*id)] = made;
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupStart() {
  return call("ncclGroupStart", [&] { return ++depth, ncclSuccess; });
}
ncclResult_t ncclGroupEnd() {
  return call("ncclGroupEnd", [&]() -> ncclResult_t {
    if (depth == 0) return ncclInvalidUsage;
    if (--depth > 0) return ncclSuccess;
    ncclResult_t answer = joined_in_group.empty() ? ncclSuccess : ncclInProgress;
    joined_in_group.clear();
    for (const Pending& each : in_group) each.comm->user = std::this_thread::get_id();
    if (start(in_group) == ncclInProgress) answer = ncclInProgress;
    return answer;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return call("ncclCommInitRankConfig", [&]() -> ncclResult_t {
    const ncclConfig_t whole = NCCL_CONFIG_INITIALIZER;
    if (config == nullptr || config->blocking != 0)
      refuse("ncclCommInitRankConfig of a communicator that blocks, without a deadline: set config.blocking to 0");
    if (config->magic != whole.magic || config->version != whole.version || config->size != whole.size)
      refuse("ncclCommInitRankConfig with a config that NCCL_CONFIG_INITIALIZER did not make");
    auto found = cliques.find(key_of(id));
    if (found == cliques.end() && !fake_nccl::SharedClique::is_own(id)) {
      const auto joined = std::make_shared<Clique>();
      joined->shared = std::make_unique<fake_nccl::SharedClique>(id);
      found = cliques.emplace(key_of(id), joined).first;
    }
    if (found == cliques.end()) refuse("ncclCommInitRankConfig with an id that ncclGetUniqueId did not make");
    if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    const std::shared_ptr<Clique> clique = found->second;
    if (clique->ranks == 0) {
      clique->ranks = ranks;
      clique->members.resize(static_cast<std::size_t>(ranks));
      clique->next.resize(static_cast<std::size_t>(ranks));
    }
    if (!clique->shared->come(static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks), gpu_of_thread()))
      refuse("ncclCommInitRankConfig: a rank comes twice, or ranks do not agree on how many they are");
    auto made = std::make_unique<ncclComm>();
    made->clique = clique;
    made->rank = rank;
    made->device = fake_cuda::chosen_device();
    made->polls = chosen.polls;
    clique->members[static_cast<std::size_t>(rank)] = made.get();
    ++clique->came_here;
    live.insert(made.get());
    if (depth > 0) joined_in_group.push_back(made.get());
    *comm = made.release();
    return ncclInProgress;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return call("ncclCommGetAsyncError", [&]() -> ncclResult_t {
    ncclComm& of = require_live(comm, "ncclCommGetAsyncError");
    const auto ask = [&]() -> ncclResult_t {
      if (of.error != ncclSuccess) return of.error;
      if (of.is_revoked) return --of.polls > 0 ? ncclInProgress : ncclSuccess;
      if (chosen.hears_of_aborts && of.clique->shared->is_aborted()) {
        last_error = "another process has aborted";
        return of.error = ncclRemoteError;
      }
      if (of.is_joining) {
        if (!of.clique->shared->have_all_come()) return ncclInProgress;
        if (of.clique->shared->has_gpu_twice()) {
          last_error = "Duplicate GPU detected";
          return of.error = ncclInvalidUsage;
        }
        if (--of.polls >= 0) return ncclInProgress;
        of.polls = 0;
        of.is_joining = false;
        return ncclSuccess;
      }
      if (of.polls > 0 && --of.polls > 0) return ncclInProgress;
      if (of.host_call && !advance_host_call(of)) return ncclInProgress;
      put_all(std::exchange(of.waiting, {}));
      if (of.is_finalizing && !of.is_finalized) {
        for (const OperationRef& each : of.put)
          if (!fake_cuda::poll(each)) return ncclInProgress;
        of.is_finalized = true;
      }
      return ncclSuccess;
    };
    *state = ask();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return call("ncclCommFinalize", [&]() -> ncclResult_t {
    ncclComm& of = require_usable(comm, "ncclCommFinalize");
    if (of.error != ncclSuccess) return of.error;
    if (of.is_finalizing) refuse("ncclCommFinalize of a communicator that is finalized");
    if (std::any_of(windows.begin(), windows.end(), [&](const auto& each) { return each.second.comm == comm; }))
      refuse("ncclCommFinalize of a communicator that has windows: deregister them before");
    if (of.device_communicators != 0)
      refuse("ncclCommFinalize of a communicator that has device communicators: destroy them before");
    of.is_finalizing = true;
    of.polls = chosen.polls;
    return ncclInProgress;
  });
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return call("ncclCommDestroy", [&]() -> ncclResult_t {
    const ncclComm& of = require_usable(comm, "ncclCommDestroy");
    if (of.error != ncclSuccess) refuse("ncclCommDestroy of a communicator that has failed: it can only be aborted");
    if (!of.is_finalized)
      refuse("ncclCommDestroy of a communicator that is not finalized, which waits without a deadline");
    forget(comm);
    return ncclSuccess;
  });
}
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  return call("ncclCommRevoke", [&]() -> ncclResult_t {
    ncclComm& of = require_live(comm, "ncclCommRevoke");
    if (of.is_finalizing || of.is_revoked || flags != NCCL_REVOKE_DEFAULT) return ncclInvalidArgument;
    end_collectives(*of.clique);
    of.is_revoked = true;
    of.is_joining = false;
    of.waiting.clear();
    of.host_call.reset();
    of.polls = chosen.polls + 1;
    return ncclInProgress;
  });
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return call("ncclCommAbort", [&]() -> ncclResult_t {
    ncclComm& of = require_live(comm, "ncclCommAbort");
    end_collectives(*of.clique);
    forget(comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::all_reduce, "ncclAllReduce", send, receive, count, type, op, 0, comm, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::reduce, "ncclReduce", send, receive, count, type, op, root, comm, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::broadcast, "ncclBroadcast", send, receive, count, type, ncclSum, root, comm, stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective(Kind::all_gather, "ncclAllGather", send, receive, count, type, ncclSum, 0, comm, stream);
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return collective(Kind::send, "ncclSend", send, nullptr, count, type, ncclSum, peer, comm, stream);
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return collective(Kind::receive, "ncclRecv", nullptr, receive, count, type, ncclSum, peer, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::reduce_scatter, "ncclReduceScatter", send, receive, count, type, op, 0, comm, stream);
}

ncclResult_t ncclMemAlloc(void** first, size_t bytes) {
  return call("ncclMemAlloc", [&]() -> ncclResult_t {
    if (fake_cuda::forbidden_by_capture() != cudaSuccess) return ncclUnhandledCudaError;
    fake_cuda::use_context();
    *first = fake_cuda::allocate_in_file(fake_cuda::chosen_device(), bytes);
    if (*first != nullptr) return ncclSuccess;
    last_error = "Cuda failure 2 'out of memory'";
    return ncclUnhandledCudaError;
  });
}
ncclResult_t ncclMemFree(void* first) {
  return call("ncclMemFree", [&]() -> ncclResult_t {
    const fake_cuda::Allocation* const allocation = fake_cuda::allocation_at(first);
    if (allocation == nullptr || allocation->file < 0)
      refuse("ncclMemFree of memory that ncclMemAlloc did not give: " + fake_cuda::place_of(first));
    if (window_of(first) != windows.end()) refuse("ncclMemFree of memory that is in a window: deregister that before");
    require_unused("ncclMemFree", first);
    fake_cuda::release_memory(first);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* first, size_t bytes, ncclWindow_t* window, int flags) {
  return call("ncclCommWindowRegister", [&]() -> ncclResult_t {
    ncclComm& of = require_usable(comm, "ncclCommWindowRegister");
    if (!chosen.windows)
      refuse(
          "ncclCommWindowRegister of a communicator without symmetric memory, which makes no window that kernels "
          "reach: ask ncclDevCommCreate before");
    const fake_cuda::Allocation* const allocation = fake_cuda::allocation_at(first);
    if (allocation == nullptr || allocation->freed || allocation->file < 0 || allocation->device != of.device ||
        !fake_cuda::is_device_memory(first, bytes))
      refuse("ncclCommWindowRegister of " + std::to_string(bytes) + " bytes of " + fake_cuda::place_of(first) +
             ", which ncclMemAlloc did not give for GPU " + std::to_string(of.device));
    if (first != allocation->first) refuse("the fake NCCL has windows of whole allocations only");
    if (flags != NCCL_WIN_COLL_SYMMETRIC) refuse("ncclCommWindowRegister without NCCL_WIN_COLL_SYMMETRIC");
    HostCall begun{"ncclCommWindowRegister of rank " + std::to_string(of.rank), {}, window, nullptr, HostCall::begun};
    begun.mine = {HostCall::window, bytes, static_cast<std::uint64_t>(getpid()), reinterpret_cast<std::uint64_t>(first),
                  static_cast<std::uint64_t>(allocation->file)};
    return begin_host_call(of, std::move(begun));
  });
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return call("ncclCommWindowDeregister", [&]() -> ncclResult_t {
    const ncclComm& of = require_usable(comm, "ncclCommWindowDeregister");
    const auto found = windows.find(window);
    if (found == windows.end() || found->second.comm != &of)
      refuse("ncclCommWindowDeregister of a window that the communicator does not have");
    forget_window(found, "ncclCommWindowDeregister");
    return ncclSuccess;
  });
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements* requirements, ncclDevComm* made) {
  return call("ncclDevCommCreate", [&]() -> ncclResult_t {
    ncclComm& of = require_usable(comm, "ncclDevCommCreate");
    if (!chosen.windows) {
      last_error = "Communicator does not support symmetric memory!";
      return ncclInvalidUsage;
    }
    if (requirements->lsaMultimem || requirements->lsaBarrierCount != 0)
      refuse("ncclDevCommCreate with requirements that the fake NCCL does not have");
    HostCall begun{"ncclDevCommCreate of rank " + std::to_string(of.rank), {}, nullptr, made, HostCall::begun};
    begun.mine.kind = HostCall::device_communicator;
    return begin_host_call(of, std::move(begun));
  });
}
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm* made) {
  return call("ncclDevCommDestroy", [&]() -> ncclResult_t {
    ncclComm& of = require_usable(comm, "ncclDevCommDestroy");
    if (of.device_communicators-- == 0 || made->rank != of.rank)
      refuse("ncclDevCommDestroy of a device communicator that is not there");
    return ncclSuccess;
  });
}

}  // extern "C"
