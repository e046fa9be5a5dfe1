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

/// The rank of this process among the processes of a job on this machine.
struct LocalProcesses {
  std::size_t number = 0;  ///< rank of this process, from 0
  std::size_t count = 1;   ///< number of these processes
};

namespace detail {
struct TouchNothing {
  DIST_HD void operator()(std::size_t) const {}
};
struct FloatOfIndex {
  DIST_HD float operator()(std::size_t i) const { return static_cast<float>(i); }
};
}  // namespace detail

/// An in-order work queue of one device, owned by a replica: a cheap handle, whose copies refer to the same queue. Work
/// runs in order, possibly asynchronously; its memory must stay unchanged until it is done. Bodies are copied. They
/// must not capture references to host objects unless the memory is host-accessible.
///
/// - `enter()`: a host thread calls it before it first submits work.
/// - `for_each(range, body)`: calls `body(i)` for each index. The calls must be independent.
/// - `transform_reduce(op, range, body)`: reduces `body(i)` over all indices with `op`, and waits. The order depends
///   only on the range, so results are reproducible.
/// - `start_transform_reduce(op, range, body)`: returns a Future of the reduction; `value()` waits.
/// - `transform_reduce_to(op, range, body, to)`: reduces into the single element of `to`, without waiting.
/// - `copy(from, to)`: copies between spans of equal size, from or to the host or within the device. A host span must
///   stay untouched until `wait`.
/// - `fill(to, value)`: sets all elements.
/// - `record(event)` marks all earlier work; `wait_for(event)`, on any queue of the device type, orders later work
///   after it, without blocking the host. An `Event{queue}` is complete until it is recorded.
/// - `wait()`: waits for all submitted work, whose results the host then sees. The queue is the Future of all its work.
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

/// The variable memory of a strategy: a region on each replica's device, given by device numbers, all with the same
/// layout. A slice has the same offset in all regions.
///
/// - `allocate(bytes)`: returns the offset of a new slice of zero bytes, aligned for all element types. Throws
///   OutOfMemory.
/// - `release(offset, bytes)`: frees the slice, after the devices' work on it.
/// - `at(replica, offset)`: returns the address in a replica's region.
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

/// The input buffers of a replica on a device whose memory the host cannot access: slots used in turn, concurrently
/// with the replica's work. Use it outside runs, from one thread at a time.
///
/// - `Ring{queue, slots}`: the replica's queue must outlive all calls except the destructor.
/// - `prepare(bytes)`: returns host memory for the next batch, whose device address is `destination()`. Waits only if
///   all slots are in use.
/// - `upload(queue)`: copies the batch to the device, before later work on the queue.
/// - `retire(queue)`: releases the batch after all earlier work on the queue. Does nothing without a batch.
template <class Ring, class Q>
concept InputRing = std::constructible_from<Ring, const Q&, std::size_t> &&
    requires(Ring ring, const Q& queue, std::size_t bytes) {
  { ring.prepare(bytes) } -> std::same_as<std::byte*>;
  { ring.destination() } -> std::same_as<std::byte*>;
  ring.upload(queue);
  ring.retire(queue);
};

/// Devices that can access host memory: `D::Memory::on_host(devices)` is a ReplicaMemory there, with one region for all
/// replicas.
template <class D>
concept ReachesHostMemory = requires(std::span<const std::size_t> devices) {
  { D::Memory::on_host(devices)->replicas() } -> std::same_as<std::size_t>;
};

/// Devices that may be unable to access each other's memory: `require_reach(queues, replicas)` throws if any of them
/// are.
template <class D>
concept MayNotReach = requires(const typename D::Queues& queues, std::size_t replicas) {
  D::require_reach(queues, replicas);
};

/// Devices that support graphs of work on several queues: a `D::Graph::Capture{graph}` captures the work of the queues
/// during its lifetime, `capture.end()` prepares the graph, and `graph.launch()` launches it on the first queue.
template <class D>
concept CapturesWork = requires(typename D::Graph& graph, typename D::Graph::Capture& capture) {
  capture.end();
  graph.launch();
};

namespace detail {
/// True if the devices use host memory, or have an InputRing for batches.
template <class D>
[[nodiscard]] constexpr bool takes_input() {
  if constexpr (D::Space::host_accessible)
    return true;
  else
    return InputRing<typename D::InputRing, typename D::Queue>;
}
}  // namespace detail

/// Devices that the processes of a machine divide among them: `placement(replicas, here)` returns devices from the
/// share of process `here.number`.
template <class D>
concept SharedOutOnHost = requires(std::size_t replicas, LocalProcesses here) {
  { D::placement(replicas, here) } -> std::same_as<std::vector<std::size_t>>;
};

/// Devices that limit concurrent use below their number: `most_at_once()` is the default number of replicas.
template <class D>
concept LimitsUse = requires {
  { D::most_at_once() } -> std::same_as<std::size_t>;
};

/// A type of devices for replicas, numbered from 0.
///
/// - `name` ("Cpu"), and `type`, the type in device names ("cpu" in "/cpu:0", which is `device_name(0)`).
/// - `count()`: the number of devices that this process may use.
/// - `refuse(name)`: throws the error for an unknown device name.
/// - `placement(replicas)`: the default devices for `replicas` replicas; fewer if they are shared.
/// - `processors(devices)`: the host processor for the thread of each replica, given the replicas' devices; none if the
///   system places the threads.
/// - `Space`, the MemorySpace of its memory, and `Span<T>` for elements there.
/// - `Queues{devices, timeout}`: the state of the replicas' queues, owned by the strategy; `queues[replica]` is one
///   `Queue`. The host waits at most `timeout` for it (0: no limit).
/// - `Memory{devices}`: see ReplicaMemory.
/// - `InputRing`, if the host cannot access the memory.
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
