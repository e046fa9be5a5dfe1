#include "scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "device_memory.hpp"
#include "fiber.hpp"
#include "machine.hpp"
#include "refusal.hpp"

namespace fake_cuda {
namespace {

std::map<std::uint64_t, OperationRef> pending;  // by number, a legal order of execution
std::map<int, Moment> ends;                     // end of all completed operations, by device
std::uint64_t next_number = 0;
bool may_others_help = false;
std::size_t run_count = 0;
std::mt19937_64 random_numbers;
thread_local const Operation* running = nullptr;

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds patience() { return std::chrono::milliseconds{options().patience_ms}; }

bool can_run(const Operation& operation) {
  return operation.unfinished == 0 && (!operation.ready || operation.ready());
}

std::uint64_t walks = 0;

void follow_once(const Operation& operation) {
  auto& each = const_cast<Operation&>(operation);
  if (std::exchange(each.walk, walks) == walks) return;
  if (operation.is_meeting)
    for (const OperationRef& before : operation.before) follow_once(*before);
  else
    each.end.follow();
}
/// Orders the calling execution after `operation`, for the thread sanitizer. An operation without work is not an
/// execution: it joins its dependencies, which may be reachable on many paths.
void follow(const Operation& operation) {
  ++walks;
  follow_once(operation);
}

/// Orders the host, within a call of the runtime, after `operation`.
void follow_in_call(const Operation& operation) {
  const SeenSync seen;
  follow(operation);
}

/// Runs the work on a separate stack, because it may be a function of the program.
void run_work(const Operation& operation) {
  static Fiber fiber;
  if (under_thread_sanitizer()) fiber.renew();
  fiber.start([](void* work) { (*static_cast<const std::function<void()>*>(work))(); },
              const_cast<std::function<void()>*>(operation.work.get()));
}

void execute(Operation& operation) {
  const OpenedMemory opened{operation};
  const Execution host = Execution::current();
  Moment& end_on_device = ends[operation.device];
  Execution self{operation.name.c_str()};
  running = &operation;
  self.enter();
  operation.put.follow();
  if (operation.captured != nullptr) operation.captured->put.follow();
  for (const OperationRef& before : operation.before) follow(*before);
  run_work(operation);
  operation.end.mark();
  end_on_device.mark();
  host.enter();
  self.end();
  running = nullptr;
  operation.work = nullptr;
  operation.captured = nullptr;
  operation.before.clear();
}

void run(const OperationRef& operation) {
  pending.erase(operation->number);
  if (!operation->is_meeting) execute(*operation);
  operation->done = true;
  operation->done_at = gpu_time();
  for (Operation* const next : std::exchange(operation->after, {})) --next->unfinished;
  ++run_count;
  machine_changed().notify_all();
}

/// Runs any operation that may run. Returns false if nothing may run.
bool run_any() {
  std::vector<OperationRef> candidates;
  for (const auto& [number, operation] : pending) {
    if (!can_run(*operation)) continue;
    candidates.push_back(operation);
    if (options().schedule != Schedule::random) break;
  }
  if (candidates.empty()) return false;
  run(candidates[candidates.size() == 1 ? 0 : chance()() % candidates.size()]);
  return true;
}

/// Returns the first of `operation` and its dependencies that may run.
OperationRef first_needed(const OperationRef& operation) {
  OperationRef first;
  std::vector<Operation*> open{operation.get()};
  std::set<const Operation*> seen;
  while (!open.empty()) {
    Operation* const each = open.back();
    open.pop_back();
    if (each->done || !seen.insert(each).second) continue;
    if (can_run(*each) && (first == nullptr || each->number < first->number)) first = pending.at(each->number);
    for (const OperationRef& before : each->before) open.push_back(before.get());
  }
  return first;
}

/// Runs one operation that advances `operation`. Returns false if none may run.
bool advance(const OperationRef& operation) {
  if (options().schedule == Schedule::lazy)
    if (const OperationRef first = first_needed(operation); first != nullptr) {
      run(first);
      return true;
    }
  return run_any();  // it may wait for another rank
}

/// Describes the dependencies of each stream.
std::string deadlock_of(const Operation& waited) {
  std::string text = "deadlock: the host waits for " + describe(waited) + ", and nothing can run";
  std::set<std::pair<int, int>> streams;
  for (const auto& [number, operation] : pending) {
    if (!streams.insert({operation->device, operation->stream}).second) continue;
    text += "\n  stream " + std::to_string(operation->stream) + " of GPU " + std::to_string(operation->device) + ": '" +
            operation->name + "' waits for ";
    if (operation->unfinished == 0) {
      text += "its peers";
      continue;
    }
    std::string separator;
    for (const OperationRef& before : operation->before)
      if (!before->done) text += std::exchange(separator, ", ") + describe(*before);
  }
  return text;
}

}  // namespace

void put(const OperationRef& operation) {
  operation->number = next_number++;
  for (const OperationRef& before : operation->before)
    if (!before->done) {
      ++operation->unfinished;
      before->after.push_back(operation.get());
    }
  {
    const SeenSync seen;
    operation->put.mark();
  }
  pending[operation->number] = operation;
  machine_changed().notify_all();
  switch (options().schedule) {
    case Schedule::eager:
      while (run_any()) {
      }
      break;
    case Schedule::lazy:
      break;
    case Schedule::random:
      for (auto runs = chance()() % 4; runs > 0 && run_any(); --runs) {
      }
      break;
  }
}

void wait_for(const OperationRef& operation) {
  if (operation == nullptr) return;
  for (auto since = Clock::now(); !operation->done;) {
    if (advance(operation)) {
      since = Clock::now();
      continue;
    }
    if (!may_others_help && Clock::now() - since > patience()) refuse(deadlock_of(*operation));
    machine_changed().wait_for(machine_mutex(), std::chrono::milliseconds{5});
  }
  follow_in_call(*operation);
}

void wait_for_device(int device) {
  std::vector<OperationRef> waited;
  for (const auto& [number, operation] : pending)
    if (operation->device == device) waited.push_back(operation);
  for (const OperationRef& operation : waited) wait_for(operation);
  const SeenSync seen;
  ends[device].follow();
}

std::int64_t gpu_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

bool poll(const OperationRef& operation) {
  thread_local std::optional<Clock::time_point> stuck_since;
  thread_local std::size_t runs_before = 0;
  if (operation == nullptr) return true;
  if (!operation->done && (options().schedule != Schedule::random || chance()() % 2 == 0) && !advance(operation)) {
    // A caller polls repeatedly, and nothing runs in between.
    if (!stuck_since || runs_before != run_count) stuck_since = Clock::now();
    runs_before = run_count;
    if (!may_others_help && Clock::now() - *stuck_since > patience()) refuse(deadlock_of(*operation));
  } else {
    stuck_since.reset();
  }
  if (operation->done) follow_in_call(*operation);
  return operation->done;
}

void let_run() {
  may_others_help = true;
  while (run_any() && options().schedule == Schedule::eager) {
  }
}

const Operation* pending_user(const void* first, const void* end) {
  for (const auto& [number, operation] : pending)
    for (const void* const address : operation->addresses)
      if (address >= first && address < end) return operation.get();
  return nullptr;
}

std::size_t operations_run() noexcept { return run_count; }

std::mt19937_64& chance() noexcept { return random_numbers; }

const Operation* running_operation() noexcept { return running; }

void reset_scheduler(std::uint64_t seed) {
  while (run_any()) {
  }
  for (const auto& [number, operation] : pending) operation->before.clear();
  pending.clear();
  random_numbers.seed(seed);
  run_count = 0;
  may_others_help = false;
}

}  // namespace fake_cuda
