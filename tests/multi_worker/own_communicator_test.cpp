// A program that owns MPI passes a communicator. The library's calls of MPI are counted.
#include <dist/strategy/multi_worker.hpp>
// ranks: 1 2 4
// thread levels: single funneled serialized multiple

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/mpi/shutdown_notice.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>
#include <support/small_network.hpp>
#include <support/what_throws.hpp>

namespace {

std::atomic<int> starts = 0;
std::atomic<int> ends = 0;
std::atomic<int> by_other_threads = 0;
std::atomic<int> communicators = 0;  // created and not freed
const pthread_t first_thread = pthread_self();

void count_thread() {
  if (pthread_equal(first_thread, pthread_self()) == 0) ++by_other_threads;
}

}  // namespace

// Intercepts the library's MPI calls that communicate, with MPI's profiling interface.
extern "C" {
#define DIST_TEST_COUNTED(function, parameters, arguments) \
  int MPI_##function parameters {                          \
    count_thread();                                        \
    return PMPI_##function arguments;                      \
  }
DIST_TEST_COUNTED(Isend,
                  (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* r),
                  (data, count, type, to, tag, comm, r))
DIST_TEST_COUNTED(Irecv, (void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* r),
                  (data, count, type, from, tag, comm, r))
DIST_TEST_COUNTED(Recv,
                  (void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status),
                  (data, count, type, from, tag, comm, status))
DIST_TEST_COUNTED(Iprobe, (int from, int tag, MPI_Comm comm, int* here, MPI_Status* status),
                  (from, tag, comm, here, status))
DIST_TEST_COUNTED(Test, (MPI_Request * request, int* done, MPI_Status* status), (request, done, status))
DIST_TEST_COUNTED(Testall, (int count, MPI_Request* requests, int* done, MPI_Status* statuses),
                  (count, requests, done, statuses))
DIST_TEST_COUNTED(Cancel, (MPI_Request * request), (request))
DIST_TEST_COUNTED(Request_free, (MPI_Request * request), (request))
DIST_TEST_COUNTED(Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm),
                  (data, count, type, root, comm))
DIST_TEST_COUNTED(Allreduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                  (in, out, count, type, op, comm))
DIST_TEST_COUNTED(Reduce_scatter,
                  (const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                  (in, out, counts, type, op, comm))
DIST_TEST_COUNTED(Allgather,
                  (const void* in, int count, MPI_Datatype type, void* out, int each, MPI_Datatype of_out,
                   MPI_Comm comm),
                  (in, count, type, out, each, of_out, comm))
DIST_TEST_COUNTED(Allgatherv,
                  (const void* in, int count, MPI_Datatype type, void* out, const int* counts, const int* places,
                   MPI_Datatype of_out, MPI_Comm comm),
                  (in, count, type, out, counts, places, of_out, comm))
#undef DIST_TEST_COUNTED

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
  count_thread();
  ++communicators;
  return PMPI_Comm_idup(comm, made, request);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  count_thread();
  const int result = PMPI_Comm_split(comm, color, key, made);
  if (*made != MPI_COMM_NULL) ++communicators;
  return result;
}
int MPI_Comm_free(MPI_Comm* comm) {
  count_thread();
  --communicators;
  return PMPI_Comm_free(comm);
}
int MPI_Init_thread(int* count, char*** arguments, int wanted, int* provided) {
  ++starts;
  return PMPI_Init_thread(count, arguments, wanted, provided);
}
int MPI_Init(int* count, char*** arguments) {
  ++starts;
  return PMPI_Init(count, arguments);
}
int MPI_Finalize() {
  ++ends;
  return PMPI_Finalize();
}
}

namespace {

namespace nn = dist::nn;
using support::compute;
using support::rank_in;
using support::size_of;
using support::SmallBatch;
using support::SmallNet;

int thread_level() {
  int provided = 0;
  MPI_Query_thread(&provided);
  return provided;
}

/// A subset of the world with its own error handler: with more than two ranks, the even or the odd ones, in reverse
/// order.
class Part {
 public:
  Part() {
    const int rank = static_cast<int>(rank_in(MPI_COMM_WORLD));
    const int color = size_of(MPI_COMM_WORLD) > 2 ? rank % 2 : 0;
    PMPI_Comm_split(MPI_COMM_WORLD, color, -rank, &comm);
    MPI_Comm_create_errhandler(count_error, &handler_);
    MPI_Comm_set_errhandler(comm, handler_);
    errors() = 0;
    communicators = 0;
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    MPI_Errhandler_free(&handler_);
    PMPI_Comm_free(&comm);
  }

  /// The rank of the first member in the world.
  [[nodiscard]] static std::size_t last_rank() {
    const std::size_t last = size_of(MPI_COMM_WORLD) - 1;
    return last < 2 || last % 2 == rank_in(MPI_COMM_WORLD) % 2 ? last : last - 1;
  }
  /// Checks that MPI and the communicator are unchanged and usable.
  void check_untouched() {
    int initialised = 0, finalised = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    CHECK(initialised == 1);
    CHECK(finalised == 0);
    CHECK(starts == 1);  // by main
    CHECK(ends == 0);

    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(comm, &handler);
    CHECK(handler == handler_);
    MPI_Errhandler_free(&handler);
    CHECK(errors() == 0);
    MPI_Send(nullptr, 0, MPI_BYTE, static_cast<int>(size_of(comm)), 0, comm);  // to an invalid rank
    CHECK(errors() == 1);
    errors() = 0;
    int sum = 1;
    PMPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == static_cast<int>(size_of(comm)));
  }

  MPI_Comm comm = MPI_COMM_NULL;

 private:
  static void count_error(MPI_Comm*, int*, ...) { ++errors(); }
  static int& errors() {
    static int count = 0;
    return count;
  }

  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

/// Runs all kinds of collectives, and some training steps.
template <class Strategy>
void use(Strategy& strategy, std::size_t world_rank_of_chief) {
  const std::size_t replicas = strategy.num_replicas_in_sync();
  const auto variable = strategy.template variable<float>({3}, static_cast<float>(rank_in(MPI_COMM_WORLD)));
  CHECK(variable.component(strategy.scope(), 0)[2] == static_cast<float>(world_rank_of_chief));
  const auto ids = strategy.run([](auto& replica) { return static_cast<int>(replica.replica_id().index()); });
  CHECK(strategy.reduce(dist::sum, ids) == static_cast<int>(replicas * (replicas - 1) / 2));
  const auto rows = strategy.run([](auto& replica) {
    dist::Tensor<int> row{{1}};
    row[0] = static_cast<int>(replica.replica_id().index()) + replica.all_reduce(dist::max, 5);
    return row;
  });
  const dist::Tensor<int> all = strategy.gather(rows, 0);
  REQUIRE(all.size() == replicas);
  for (std::size_t i = 0; i < replicas; ++i) CHECK(all[i] == static_cast<int>(i) + 5);

  nn::Network<SmallNet> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.1f}};
  nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 1}};
  const auto loss = [&] {
    return strategy.reduce(dist::sum, strategy.run([&](auto& replica) {
      const SmallBatch batch{4, replica.replica_id().index()};
      auto logits = net.forward(replica, dist::TensorView<const float>{batch.x});
      return nn::sparse_categorical_crossentropy(replica, logits, dist::TensorView<const int>{batch.y}, 4 * replicas)
          .value();
    }));
  };
  const float before = loss();
  for (int step = 0; step < 40; ++step)
    strategy.run([&](auto& replica) {
      compute(replica, net, SmallBatch{4, replica.replica_id().index()}, overlap.on_ready(replica));
      overlap.wait(replica);
      optimizer.apply_gradients(replica, nn::skip_aggregation);
    });
  CHECK(loss() < before);
}

/// Waits until the library's communicators are freed, which requires that all members have left.
bool all_are_freed() {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
       communicators != 0 && std::chrono::steady_clock::now() < end;)
    static_cast<void>(dist::mpi::detail::ShutdownNotice::free_left());
  return communicators == 0;
}

dist::MultiWorkerOptions with(bool in_memory, std::size_t replicas) {
  dist::MultiWorkerOptions options;
  options.hierarchical = in_memory;
  options.replicas = replicas;
  options.communication.timeout = std::chrono::seconds{30};
  return options;
}

}  // namespace

TEST_CASE_TEMPLATE("a communicator of the program trains and remains the program's (spec A07)", Ops,
                   dist::RingAllReduce, dist::MpiAllReduce) {
  Part part;
  const int level = thread_level();
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      by_other_threads = 0;
      {
        dist::MultiWorker<Ops> strategy{dist::mpi::ref(part.comm), with(in_memory, replicas)};
        CHECK(strategy.num_workers() == size_of(part.comm));
        CHECK(strategy.worker_rank() == rank_in(part.comm));
        CHECK(strategy.describe().find("the program's communicator") != std::string::npos);
        use(strategy, part.last_rank());
        part.check_untouched();
      }
      part.check_untouched();
      CHECK(thread_level() == level);
      const bool may_use_threads = level == MPI_THREAD_MULTIPLE && !in_memory && size_of(part.comm) > 1;
      CHECK((by_other_threads != 0) == may_use_threads);
      CHECK(all_are_freed());
    }
}

TEST_CASE("a strategy can be constructed from dist::mpi::ref of a communicator") {
  Part part;
  {
    MPI_Comm comm = part.comm;
    dist::MultiWorker<dist::RingAllReduce> strategy{dist::mpi::ref(comm)};
    CHECK(strategy.reduce(dist::sum, strategy.run([](auto&) { return 1; })) == static_cast<int>(size_of(comm)));
  }
  part.check_untouched();
}

TEST_CASE("a strategy ended by an exception leaves MPI and the communicator unchanged") {
  Part part;
  CHECK(support::what_throws<std::runtime_error>([&] {
          dist::MultiWorker<dist::RingAllReduce> strategy{dist::mpi::ref(part.comm), with(false, 1)};
          strategy.workers().barrier();
          throw std::runtime_error("a cosmic ray");
        }) == "a cosmic ray");
  part.check_untouched();
  dist::MultiWorker<dist::RingAllReduce> anew{dist::mpi::ref(part.comm), with(true, 1)};
  CHECK(anew.reduce(dist::sum, anew.run([](auto&) { return 1; })) == static_cast<int>(size_of(part.comm)));
}

TEST_CASE("a thread that must not call MPI is rejected before it does; others may create the strategy") {
  Part part;
  by_other_threads = 0;
  std::string message;
  std::thread{[&] {
    message = support::what_throws([&] {
      dist::MultiWorker<dist::MpiAllReduce> strategy{dist::mpi::ref(part.comm), with(false, 1)};
      CHECK(strategy.reduce(dist::sum, strategy.run([](auto&) { return 1; })) == static_cast<int>(size_of(part.comm)));
    });
  }}.join();
  CAPTURE(message);
  if (thread_level() < MPI_THREAD_SERIALIZED) {
    CHECK(message.find("MPI was called from a thread that must not call it") != std::string::npos);
    CHECK(by_other_threads == 0);
  } else {
    CHECK(message == "nothing was thrown");
    CHECK(by_other_threads > 0);
  }
  part.check_untouched();
}
