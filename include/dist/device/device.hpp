#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// This process among those of a job that run on this machine.
struct LocalProcesses {
  std::size_t number = 0;
  std::size_t count = 1;
};

namespace detail {
struct TouchNothing {
  DIST_HD void operator()(std::size_t) const {}
};
struct FloatOfIndex {
  DIST_HD float operator()(std::size_t i) const { return static_cast<float>(i); }
};
}  // namespace detail

/// An in-order stream of work on one device, which a replica owns: a cheap handle, which copies name the same stream.
/// What is put there is done in that order, now or later; the memory that it reads and writes stays as it is until
/// then. Bodies are copied, run where the device's memory is, and capture nothing of the host by reference unless that
/// is host-accessible.
///
/// - `enter()`: called by a host thread before it puts work there for the first time.
/// - `for_each(range, body)`: `body(i)` for every index; the calls must not depend on each other.
/// - `transform_reduce(op, range, body)`: `op` over `body(i)` for every index, waited for. The order of combination
///   depends on the range only, so the same range gives the same bits.
/// - `start_transform_reduce(op, range, body)`: the same, not waited for: a Future, whose `value()` waits.
/// - `transform_reduce_to(op, range, body, to)`: the same into the one element of `to`, without waiting.
/// - `copy(from, to)`: as many elements, between the host and the device or within the device. The host's span is left
///   alone until `wait`.
/// - `fill(to, value)`: every element.
/// - `record(event)` notes what was put so far; `wait_for(event)`, on any queue of the device's type, puts what follows
///   after that, without waiting on the host. An `Event{queue}` that was not recorded is over.
/// - `wait()`: returns when all that was put is done; the host then sees what it wrote. The queue is the Future of all that
///   was started there.
template <class Q>
concept Queue = std::copyable<Q> && Future<Q> && MemorySpace<typename Q::Space> &&
    std::constructible_from<typename Q::Event, const Q&> &&
    requires(const Q queue, IndexRange range, SpanIn<const float, typename Q::Space> read,
             SpanIn<float, typename Q::Space> write, std::span<const float> of_host, std::span<float> to_host,
             typename Q::Event& event) {
  queue.enter();
  queue.for_each(range, detail::TouchNothing{});
  { queue.transform_reduce(sum, range, detail::FloatOfIndex{}) } -> std::same_as<float>;
  { queue.start_transform_reduce(sum, range, detail::FloatOfIndex{}) } -> Future;
  { queue.start_transform_reduce(sum, range, detail::FloatOfIndex{}).value() } -> std::same_as<float>;
  queue.transform_reduce_to(sum, range, detail::FloatOfIndex{}, write);
  queue.copy(read, write);
  queue.copy(of_host, write);
  queue.copy(read, to_host);
  queue.fill(write, 1.0F);
  queue.record(event);
  queue.wait_for(event);
  queue.wait();
  queue.is_done();
};

/// The memory that a strategy gives its variables: a region on the device of each replica, given by the devices'
/// numbers, all with the same layout. A slice is one offset that holds in every region.
///
/// - `allocate(bytes)`: the offset of a new slice, aligned for every element type, of bytes that are zero. Throws
///   OutOfMemory.
/// - `release(offset, bytes)`: gives it back, once the devices have done what they do there.
/// - `at(replica, offset)`: its address in a replica's region.
///
/// Thread-safe.
template <class M>
concept ReplicaMemory = std::constructible_from<M, std::span<const std::size_t>> &&
    requires(M& memory, const M& same, std::size_t number) {
  { same.replicas() } -> std::same_as<std::size_t>;
  { same.at(number, number) } -> std::same_as<std::byte*>;
  { memory.allocate(number) } -> std::same_as<std::size_t>;
  { memory.release(number, number) }
  noexcept;
};

/// How batches come to a replica of a device whose memory the host cannot touch: slots that are used in turn, beside the
/// replica's work. All is called outside runs, by one thread at a time.
///
/// - `Ring{queue, slots}`: the replica's queue outlives every call but the destructor.
/// - `prepare(bytes)`: memory of the host for the next batch, which goes to `destination()`. The host waits only where all
///   slots are in use.
/// - `upload(queue)`: the batch goes to the device; what is put on the queue from now on sees it there.
/// - `retire(queue)`: all that uses the batch was put on the queue. Nothing where there is none.
template <class Ring, class Q>
concept InputRing = std::constructible_from<Ring, const Q&, std::size_t> &&
    requires(Ring ring, const Q& queue, std::size_t bytes) {
  { ring.prepare(bytes) } -> std::same_as<std::byte*>;
  { ring.destination() } -> std::same_as<std::byte*>;
  ring.upload(queue);
  ring.retire(queue);
};

/// Devices that also reach memory of the host: `D::Memory::on_host(devices)` is a ReplicaMemory there, with one region for
/// the replicas on all of them.
template <class D>
concept ReachesHostMemory = requires(std::span<const std::size_t> devices) {
  { D::Memory::on_host(devices)->replicas() } -> std::same_as<std::size_t>;
};

/// Devices that do not always reach each other's memory: `require_reach(queues, replicas)` throws the error of those that
/// do not.
template <class D>
concept MayNotReach = requires(const typename D::Queues& queues, std::size_t replicas) {
  D::require_reach(queues, replicas);
};

/// Devices that put work of several queues into one graph: while a `D::Graph::Capture{graph}` lives, what is put on the
/// queues becomes a part of the graph, which `capture.end()` makes ready and `graph.launch()` puts on the first queue.
template <class D>
concept CapturesWork = requires(typename D::Graph& graph, typename D::Graph::Capture& capture) {
  capture.end();
  graph.launch();
};

namespace detail {
/// Whether batches come to these devices: those of the host's memory are there already.
template <class D>
[[nodiscard]] constexpr bool takes_input() {
  if constexpr (D::Space::host_accessible)
    return true;
  else
    return InputRing<typename D::InputRing, typename D::Queue>;
}
}  // namespace detail

/// Devices that the processes of a machine share out: `placement(replicas, here)` takes them from the part of process
/// `here.number`.
template <class D>
concept SharedOutOnHost = requires(std::size_t replicas, LocalProcesses here) {
  { D::placement(replicas, here) } -> std::same_as<std::vector<std::size_t>>;
};

/// Devices of which a process may use fewer at the same time than there are: `most_at_once()`, which is the default
/// number of replicas.
template <class D>
concept LimitsUse = requires {
  { D::most_at_once() } -> std::same_as<std::size_t>;
};

/// A type of devices on which replicas run, numbered from 0.
///
/// - `name` ("Cpu"), and `type` as it stands in device names ("cpu" in "/cpu:0", which is `device_name(0)`).
/// - `count()`: how many this process may use.
/// - `refuse(name)`: throws the error of a name that names none of these: it says which there are, and what to do.
/// - `placement(replicas)`: the devices of so many replicas when nobody names them; fewer when these share them all.
/// - `processors(devices)`: the processor of the host on which the thread of each replica stays, given the replicas'
///   devices; none when the system is to place the threads.
/// - `MemorySpace` of its memory, and `Span<T>` of elements there.
/// - `Queues{devices, timeout}`: what the queues of the replicas on these devices need, owned by the strategy;
///   `queues[replica]` is the `Queue` of one, for which the host waits so long, or with 0 as long as it takes.
/// - `Memory{devices}`: see ReplicaMemory.
/// - `InputRing`, where the host cannot touch their memory.
template <class D>
concept Device = MemorySpace<typename D::Space> && Queue<typename D::Queue> && ReplicaMemory<typename D::Memory> &&
    std::same_as<typename D::Queue::Space, typename D::Space> &&
    detail::takes_input<D>() && std::same_as<typename D::template Span<float>, SpanIn<float, typename D::Space>> &&
    std::constructible_from<typename D::Queues, std::span<const std::size_t>, std::chrono::nanoseconds> &&
    requires(std::size_t number, std::span<const std::size_t> devices, const typename D::Queues& queues) {
  { D::name } -> std::convertible_to<std::string_view>;
  { D::type } -> std::convertible_to<std::string_view>;
  { D::count() } -> std::same_as<std::size_t>;
  { D::placement(number) } -> std::same_as<std::vector<std::size_t>>;
  { D::processors(devices) } -> std::same_as<std::vector<std::size_t>>;
  { D::device_name(number) } -> std::same_as<std::string>;
  D::refuse(std::string_view{});
  { queues[number] } -> std::same_as<typename D::Queue>;
};

}  // namespace dist
