// A fake device type: its memory is host memory that the host cannot access, neither by type nor at run time, and work
// runs when a caller waits for it. Code that works on it accesses memory only through queues.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/device/cpu.hpp>
#include <dist/device/device.hpp>
#include <dist/device/pending.hpp>

namespace testing {

struct GuardedMemory {
  static constexpr bool host_accessible = false;
};

class GuardedDevice {
 public:
  static constexpr std::string_view name = "Guarded";
  static constexpr std::string_view type = "guarded";
  using Space = GuardedMemory;
  template <class T>
  using Span = dist::DeviceSpan<T, Space>;

  [[nodiscard]] static std::size_t count() { return 3; }
  [[nodiscard]] static std::vector<std::size_t> placement(std::size_t replicas) {
    std::vector<std::size_t> devices;
    while (devices.size() < std::min(replicas, count())) devices.push_back(devices.size());
    return devices;
  }
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t>) { return {}; }
  [[nodiscard]] static std::string device_name(std::size_t device) { return "/guarded:" + std::to_string(device); }
  [[noreturn]] static void refuse(std::string_view device) {
    throw dist::InvalidArgument("Device '" + std::string(device) + "' is not there", "there are 3", "Name one of them");
  }

 private:
  /// Serialises all work of these devices.
  struct Machine {
    std::recursive_mutex mutex;
    std::set<std::span<std::byte>*> regions;
    std::size_t working = 0;
    void protect(int how) {
      for (const auto* region : regions) mprotect(region->data(), region->size(), how);
    }
  };
  static Machine& machine() {
    static Machine machine;
    return machine;
  }
  /// Makes the memory of all devices accessible during its lifetime.
  class Working {
   public:
    Working() : lock_(machine().mutex) {
      if (machine().working++ == 0) machine().protect(PROT_READ | PROT_WRITE);
    }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;
    ~Working() {
      if (--machine().working == 0) machine().protect(PROT_NONE);
    }

   private:
    std::lock_guard<std::recursive_mutex> lock_;
  };

  /// Submitted work, and the number of completed items.
  struct Stream {
    std::deque<std::function<void()>> work;
    std::size_t put = 0;
    std::size_t done = 0;

    void add(std::function<void()> task) {
      const std::lock_guard lock{machine().mutex};
      work.push_back(std::move(task));
      ++put;
    }
    [[nodiscard]] bool is_done() const {
      const std::lock_guard lock{machine().mutex};
      return done == put;
    }
    void work_until(std::size_t number) {
      const Working working;
      while (done < number) {
        const auto task = std::move(work.front());
        work.pop_front();
        ++done;
        task();
      }
    }
  };

 public:
  class Queue {
   public:
    using Space = GuardedMemory;
    class Event {
     public:
      explicit Event(const Queue&) {}

     private:
      friend class Queue;
      std::shared_ptr<Stream> stream_;
      std::size_t number_ = 0;
    };

    static void enter() {}

    template <class Body>
    void for_each(dist::IndexRange range, const Body& body) const {
      put([=] { dist::Cpu::Queue::for_each(range, body); });
    }
    template <class Op, class Body>
    [[nodiscard]] auto transform_reduce(Op op, dist::IndexRange range, const Body& body) const {
      wait();
      const Working working;
      return dist::Cpu::Queue::transform_reduce(op, range, body);
    }
    template <class Op, class Body>
    [[nodiscard]] auto start_transform_reduce(Op op, dist::IndexRange range, const Body& body) const {
      using T = decltype(dist::Cpu::Queue::transform_reduce(op, range, body));
      const auto arrival = std::make_shared<dist::HostCopyOf<T>>();
      put([=] {
        arrival->value = dist::Cpu::Queue::transform_reduce(op, range, body);
        arrival->state = dist::HostCopyState::State::there;
      });
      return dist::Pending<T, Queue>{*this, arrival};
    }
    template <class Op, class Body, class T>
    void transform_reduce_to(Op op, dist::IndexRange range, const Body& body, Span<T> to) const {
      put([=] { *to.data() = dist::Cpu::Queue::transform_reduce(op, range, body); });
    }

    template <class T>
    void copy(std::type_identity_t<Span<const T>> from, Span<T> to) const {
      put_copy(from, to);
    }
    template <class T>
    void copy(std::type_identity_t<std::span<const T>> from, Span<T> to) const {
      put_copy(from, to);
    }
    template <class T>
    void copy(std::type_identity_t<Span<const T>> from, std::span<T> to) const {
      put_copy(from, to);
    }
    template <class T>
    void fill(Span<T> to, std::type_identity_t<T> value) const {
      put([=] { std::fill_n(to.data(), to.size(), value); });
    }

    void record(Event& event) const {
      const std::lock_guard lock{machine().mutex};
      event.stream_ = stream_;
      event.number_ = stream_->put;
    }
    void wait_for(const Event& event) const {
      if (event.stream_ != nullptr)
        put([stream = event.stream_, number = event.number_] { stream->work_until(number); });
    }
    void wait() const { stream_->work_until(stream_->put); }
    [[nodiscard]] bool is_done() const { return stream_->is_done(); }

   private:
    friend class GuardedDevice;
    explicit Queue(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
    void put(std::function<void()> task) const { stream_->add(std::move(task)); }
    template <class From, class To>
    void put_copy(From from, To to) const {
      if (from.size() != to.size()) throw dist::InvalidArgument("copy", "the sizes differ", "Give equal sizes");
      put([=] { std::copy_n(from.data(), from.size(), to.data()); });
    }

    std::shared_ptr<Stream> stream_;
  };

  class Queues {
   public:
    explicit Queues(std::span<const std::size_t> devices, std::chrono::nanoseconds = {}) {
      for (std::size_t replica = 0; replica < devices.size(); ++replica) streams_.push_back(std::make_shared<Stream>());
    }
    [[nodiscard]] Queue operator[](std::size_t replica) const { return Queue{streams_.at(replica)}; }

   private:
    std::vector<std::shared_ptr<Stream>> streams_;
  };

  /// Offsets are not reused.
  class Memory {
   public:
    explicit Memory(std::span<const std::size_t> devices) {
      for (std::size_t replica = 0; replica < devices.size(); ++replica) {
        void* const region = mmap(nullptr, capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        regions_.push_back(std::make_unique<std::span<std::byte>>(static_cast<std::byte*>(region), capacity));
        const std::lock_guard lock{machine().mutex};
        machine().regions.insert(regions_.back().get());
      }
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
      const std::lock_guard lock{machine().mutex};
      for (const auto& region : regions_) {
        machine().regions.erase(region.get());
        munmap(region->data(), region->size());
      }
    }
    [[nodiscard]] std::size_t replicas() const noexcept { return regions_.size(); }
    [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const noexcept {
      return regions_[replica]->data() + offset;
    }
    [[nodiscard]] std::size_t allocate(std::size_t bytes) {
      const std::lock_guard lock{machine().mutex};
      if (bytes > capacity - used_) throw dist::OutOfMemory("guarded memory", "it is full", "Use less");
      const std::size_t offset = used_;
      used_ += (bytes + dist::cache_line - 1) / dist::cache_line * dist::cache_line;
      return offset;
    }
    void release(std::size_t, std::size_t) noexcept {}

   private:
    static constexpr std::size_t capacity = std::size_t{1} << 28;

    std::vector<std::unique_ptr<std::span<std::byte>>> regions_;
    std::size_t used_ = 0;
  };

  /// A single slot is enough: the host waits for the previous step.
  class InputRing {
   public:
    InputRing(const Queue&, std::size_t) {}
    [[nodiscard]] std::byte* prepare(std::size_t bytes) {
      if (last_) last_->wait();
      last_.reset();
      batch_.resize(bytes);
      if (bytes > size_) there_ = memory_.at(0, memory_.allocate(size_ = bytes));
      return batch_.data();
    }
    [[nodiscard]] std::byte* destination() const noexcept { return there_; }
    void upload(const Queue& queue) {
      queue.copy(std::span<const std::byte>{batch_}, Span<std::byte>{there_, batch_.size()});
    }
    void retire(const Queue& queue) { last_.emplace(queue); }

   private:
    static constexpr std::size_t one_device_[1] = {0};

    Memory memory_{one_device_};
    std::vector<std::byte> batch_;
    std::size_t size_ = 0;
    std::byte* there_ = nullptr;
    std::optional<Queue> last_;
  };
};

static_assert(dist::Device<GuardedDevice>);

}  // namespace testing
