#include "block.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "address_sanitizer.hpp"
#include "fiber.hpp"
#include "machine.hpp"
#include "refusal.hpp"
#include "scheduler.hpp"
#include "thread_sanitizer.hpp"

namespace fake_cuda {
namespace {

constexpr unsigned warp_size = 32;
constexpr std::size_t largest_exchange = 32;
constexpr std::size_t shared_bytes = 228 << 10;  // per multiprocessor of an H100
constexpr int unset = 0xCD;

/// Shared memory of a block, without data of earlier blocks.
class SharedMemory {
 public:
  /// Starts a new block, with memory at a new address for the thread sanitizer if `is_new`.
  void begin(bool is_new) {
    if (memory_ == nullptr || is_new) map();
    poison(memory_, used_);
    used_ = 0;
    parts_.clear();
  }
  [[nodiscard]] void* part(const void* key, std::size_t bytes) {
    const auto [found, is_new] = parts_.try_emplace(key, memory_ + used_);
    if (is_new) {
      used_ += (bytes + 31) / 16 * 16;  // and a gap that stays poisoned
      if (used_ > shared_bytes) refuse("a block has " + std::to_string(used_) + " bytes of shared memory");
      unpoison(found->second, bytes);
      std::memset(found->second, unset, bytes);
    }
    return found->second;
  }

 private:
  void map() {
    void* const mapped = mmap(memory_, shared_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | (memory_ == nullptr ? 0 : MAP_FIXED), -1, 0);
    if (mapped == MAP_FAILED) refuse("no memory for blocks to share");
    memory_ = static_cast<char*>(mapped);
    poison(memory_, shared_bytes);
  }

  char* memory_ = nullptr;
  std::size_t used_ = 0;
  std::map<const void*, char*> parts_;
};

struct Lane {
  enum class State { runs, at_barrier, at_warp, ended };
  State state = State::runs;
  Fiber* fiber = nullptr;
  KernelThread thread;
  Execution execution;  // if every thread is one
  unsigned barriers = 0;
  void* value = nullptr;  // of an exchange, with `bytes` bytes
  std::size_t bytes = 0;
  unsigned from = 0;
  char brought[largest_exchange]{};
};

class Block {
 public:
  /// `is_first`: the first block of its grid.
  Block(const BoundKernel& kernel, dim3 grid, dim3 size, uint3 index, bool is_first);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  void run();
  [[nodiscard]] const Lane& lane() const { return *lane_; }
  void wait(Lane::State state);
  void exchange(void* value, std::size_t bytes, unsigned from);
  [[nodiscard]] void* shared(const void* key, std::size_t bytes);

  static Block& current() {
    if (running == nullptr) refuse("a function of kernels is called on the host");
    return *running;
  }

 private:
  static Block* running;
  static SharedMemory& memory_of_blocks() {
    static SharedMemory memory;
    return memory;
  }
  static void run_lanes(void* block) { static_cast<Block*>(block)->run_lanes(); }
  void run_lanes();
  void call_kernel(Lane& lane);
  void enter_kernel(Lane& lane);
  void leave_kernel();
  [[nodiscard]] Fiber& next_fiber();
  bool release_barrier();
  bool release_warps();

  const BoundKernel& kernel_;
  bool separate_;
  std::vector<Lane> lanes_;
  std::vector<unsigned> order_;
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  std::size_t used_fibers_ = 0;
  Lane* lane_ = nullptr;
  Execution operation_;
  Moment begin_, end_, barrier_[2];
};

Block* Block::running = nullptr;

std::vector<std::unique_ptr<Fiber>>& fibers() {
  static std::vector<std::unique_ptr<Fiber>> all;
  return all;
}
std::size_t fresh_fibers = 0;  // in use by the running operation

Block::Block(const BoundKernel& kernel, dim3 grid, dim3 size, uint3 index, bool is_first)
    : kernel_(kernel),
      separate_(options().separate_threads && under_thread_sanitizer()),
      lanes_(std::size_t{size.x} * size.y * size.z),
      order_(lanes_.size()),
      operation_(Execution::current()) {
  if (is_first || separate_) fresh_fibers = 0;
  memory_of_blocks().begin(under_thread_sanitizer() && (is_first || separate_));
  for (unsigned number = 0; number < lanes_.size(); ++number) {
    const uint3 thread{number % size.x, number / size.x % size.y, number / size.x / size.y};
    lanes_[number].thread = {thread, index, size, grid, number};
    if (separate_) lanes_[number].execution = Execution{"CUDA thread"};
  }
  std::iota(order_.begin(), order_.end(), 0U);
  if (options().schedule == Schedule::random) std::shuffle(order_.begin(), order_.end(), chance());
  begin_.mark();
  running = this;
}

Block::~Block() {
  running = nullptr;
  if (!separate_) return;
  end_.follow();
  for (Lane& lane : lanes_) lane.execution.end();
}

Fiber& Block::next_fiber() {
  if (used_fibers_ == fibers().size()) fibers().push_back(std::make_unique<Fiber>());
  if (under_thread_sanitizer() && used_fibers_ == fresh_fibers) {
    fibers()[used_fibers_]->renew();
    ++fresh_fibers;
  }
  return *fibers()[used_fibers_++];
}

void Block::run() {
  while (ended_ < lanes_.size()) {
    bool moved = false;
    for (; started_ < lanes_.size(); moved = true) next_fiber().start(&Block::run_lanes, this);
    for (const unsigned number : order_)
      if (Lane& lane = lanes_[number]; lane.state == Lane::State::runs) {
        lane.fiber->resume();
        moved = true;
      }
    moved |= release_warps();
    moved |= release_barrier();
    if (!moved && ended_ < lanes_.size())
      refuse("deadlock in a block of " + describe(*running_operation()) + ": " +
             std::to_string(lanes_.size() - ended_) + " of " + std::to_string(lanes_.size()) +
             " threads wait at a barrier or shuffle that the others never reach");
  }
}

/// While no thread waits, one stack is enough for all.
void Block::run_lanes() {
  while (started_ < lanes_.size()) {
    Lane& lane = lanes_[order_[started_++]];
    lane.fiber = fibers()[used_fibers_ - 1].get();
    call_kernel(lane);
    ++ended_;
    lane.state = Lane::State::ended;
    if (separate_) break;  // stacks of different threads must differ
  }
}

/// The thread sanitizer sees accesses of kernels, but not of this file.
void Block::enter_kernel(Lane& lane) {
  lane_ = &lane;
  if (separate_)
    lane.execution.enter();
  else
    see_accesses(true);
}
void Block::leave_kernel() {
  if (separate_)
    operation_.enter();
  else
    see_accesses(false);
}

void Block::call_kernel(Lane& lane) {
  enter_kernel(lane);
  if (separate_) begin_.follow();
  kernel_();
  if (separate_) end_.mark();
  leave_kernel();
}

void Block::wait(Lane::State state) {
  Lane& lane = *lane_;
  Moment* const barrier = separate_ && state == Lane::State::at_barrier ? &barrier_[lane.barriers++ % 2] : nullptr;
  if (barrier != nullptr) barrier->mark();
  leave_kernel();
  lane.state = state;
  Fiber::pause();
  enter_kernel(lane);
  if (barrier != nullptr) barrier->follow();
}

void Block::exchange(void* value, std::size_t bytes, unsigned from) {
  if (bytes > largest_exchange) refuse("a shuffle of " + std::to_string(bytes) + " bytes");
  Lane& lane = *lane_;
  leave_kernel();
  std::memcpy(lane.brought, value, bytes);
  enter_kernel(lane);
  lane.value = value;
  lane.bytes = bytes;
  lane.from = from;
  wait(Lane::State::at_warp);
  lane.bytes = 0;
}

void* Block::shared(const void* key, std::size_t bytes) {
  Lane& lane = *lane_;
  leave_kernel();
  void* const part = memory_of_blocks().part(key, bytes);
  enter_kernel(lane);
  return part;
}

/// Releases all threads when all are at the barrier.
bool Block::release_barrier() {
  const auto waits = [](const Lane& lane) { return lane.state == Lane::State::at_barrier; };
  if (!std::all_of(lanes_.begin(), lanes_.end(), waits)) return false;
  for (Lane& lane : lanes_) lane.state = Lane::State::runs;
  return true;
}

bool Block::release_warps() {
  bool released = false;
  for (std::size_t first = 0; first < lanes_.size(); first += warp_size) {
    const auto begin = lanes_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = lanes_.begin() + static_cast<std::ptrdiff_t>(std::min(first + warp_size, lanes_.size()));
    if (!std::all_of(begin, end, [](const Lane& lane) { return lane.state == Lane::State::at_warp; })) continue;
    std::for_each(begin, end, [&](Lane& lane) {
      const std::size_t from = std::min(first + lane.from, lanes_.size() - 1);
      std::memcpy(lane.value, lanes_[from].brought, lane.bytes);
      lane.state = Lane::State::runs;
    });
    released = true;
  }
  return released;
}

}  // namespace

void run_grid(const BoundKernel& kernel, dim3 grid, dim3 block) {
  const UnseenAccesses unseen;
  std::vector<unsigned> order(std::size_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0U);
  if (options().schedule == Schedule::random) std::shuffle(order.begin(), order.end(), chance());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const uint3 index{order[i] % grid.x, order[i] / grid.x % grid.y, order[i] / grid.x / grid.y};
    Block{kernel, grid, block, index, i == 0}.run();
  }
}

const KernelThread& this_kernel_thread() { return Block::current().lane().thread; }
void synchronize_block() { Block::current().wait(Lane::State::at_barrier); }
void synchronize_warp() { Block::current().wait(Lane::State::at_warp); }
void exchange_in_warp(void* value, std::size_t bytes, unsigned lane) { Block::current().exchange(value, bytes, lane); }
void* shared_in_block(const void* key, std::size_t bytes) { return Block::current().shared(key, bytes); }

}  // namespace fake_cuda
