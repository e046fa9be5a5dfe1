#include "fiber.hpp"

#include <sys/mman.h>

#include <cstdint>

#include "address_sanitizer.hpp"
#include "refusal.hpp"

namespace fake_cuda {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stack_bytes = 256 << 10;  // sanitizers write their reports on it

thread_local Fiber* running = nullptr;

}  // namespace

Fiber::Fiber() {
  void* const mapped = mmap(nullptr, page + stack_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) refuse("no memory for the stack of a thread");
  stack_ = static_cast<char*>(mapped) + page;  // an overflow hits the guard page before it
  renew();
}

Fiber::~Fiber() { munmap(stack_ - page, page + stack_bytes); }

void Fiber::renew() {
  unpoison(stack_, stack_bytes);
  if (mmap(stack_, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED)
    refuse("no memory for the stack of a thread");
}

void Fiber::start(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  kept_here_ = nullptr;
  getcontext(&here_);
  here_.uc_stack.ss_sp = stack_;
  here_.uc_stack.ss_size = stack_bytes;
  here_.uc_link = nullptr;
  // makecontext passes 32-bit numbers.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&here_, reinterpret_cast<void (*)()>(&Fiber::run), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
  switch_here();
}

void Fiber::resume() { switch_here(); }

void Fiber::pause() { running->switch_back(false); }

void Fiber::run(unsigned high, unsigned low) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low);
  arrive_on_stack(nullptr, &fiber.caller_stack_, &fiber.caller_stack_bytes_);
  fiber.body_(fiber.argument_);
  fiber.switch_back(true);
}

void Fiber::switch_here() {
  outer_ = running;
  running = this;
  void* kept = nullptr;
  leave_stack(&kept, stack_, stack_bytes);
  swapcontext(&caller_, &here_);
  arrive_on_stack(kept, nullptr, nullptr);
  running = outer_;
}

void Fiber::switch_back(bool for_ever) {
  leave_stack(for_ever ? nullptr : &kept_here_, caller_stack_, caller_stack_bytes_);
  swapcontext(&here_, &caller_);
  arrive_on_stack(kept_here_, &caller_stack_, &caller_stack_bytes_);
}

}  // namespace fake_cuda
