#include "device_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "address_sanitizer.hpp"
#include "machine.hpp"
#include "operation.hpp"
#include "refusal.hpp"
#include "scheduler.hpp"

namespace fake_cuda {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 256;
constexpr int unset = 0xCD;

/// by the address of their first page
std::map<const std::byte*, Allocation> allocations;
Allocation* opened = nullptr;  // a list, because signal handlers may not allocate
struct sigaction handler_before {};

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

void set_access(const Allocation& allocation, int access) { mprotect(allocation.pages, allocation.page_bytes, access); }

std::byte* end_of(const Allocation& allocation) { return allocation.first + allocation.bytes; }
/// Returns the bytes between the end and the guard page.
std::size_t rest_of(const Allocation& allocation) {
  return static_cast<std::size_t>(allocation.pages + allocation.page_bytes - end_of(allocation));
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Allocation* const allocation = allocation_at(info->si_addr);
  if (allocation == nullptr) {  // foreign memory
    const struct sigaction& before = handler_before;
    if ((before.sa_flags & SA_SIGINFO) != 0)
      before.sa_sigaction(signal, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
      before.sa_handler(signal);
    else
      sigaction(signal, &before, nullptr);  // the access is repeated and terminates the process
    return;
  }
  const Operation* const operation = running_operation();
  if (operation == nullptr) refuse("the host touched " + place_of(info->si_addr));
  const bool is_inside = info->si_addr < end_of(*allocation) + rest_of(*allocation);
  const bool is_reached = allocation->file >= 0 || may_touch(*operation, allocation->device);
  if (allocation->freed || !is_inside || !is_reached)
    refuse(describe(*operation) + " touched " + place_of(info->si_addr));
  set_access(*allocation, PROT_READ | PROT_WRITE);
  allocation->next_open = opened;
  opened = allocation;
}

constexpr int of_no_gpu = -1;

/// Maps `page_bytes` bytes of `file`, if any, and a guard page; returns null if the system has too little memory.
std::byte* map_pages(std::size_t page_bytes, int file) {
  void* const mapped = mmap(nullptr, page_bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  if (mmap(mapped, page_bytes, PROT_READ | PROT_WRITE, kind | MAP_FIXED, file, 0) == MAP_FAILED) return nullptr;
  return static_cast<std::byte*>(mapped);
}
void close_file(Allocation& allocation) {
  if (allocation.file >= 0) close(std::exchange(allocation.file, -1));
}

/// Test frameworks install their own handler for each test case.
void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  struct sigaction before {};
  sigaction(SIGSEGV, &action, &before);
  if (before.sa_sigaction != on_fault) handler_before = before;
}

bool has_room(int device, std::size_t bytes) {
  return bytes <= options().memory && memory_in_use(device) + bytes <= options().memory;
}

/// Registers new memory, which is inaccessible at first; later only the requested bytes are accessible.
std::byte* keep(const Allocation& allocation) {
  install_handler();
  poison(allocation.pages, static_cast<std::size_t>(allocation.first - allocation.pages));
  poison(end_of(allocation), rest_of(allocation));
  set_access(allocation, PROT_NONE);
  allocations[allocation.pages] = allocation;
  return allocation.first;
}

}  // namespace

std::byte* allocate_on(int device, std::size_t bytes) {
  if (!has_room(device, bytes)) return nullptr;
  const std::size_t page_bytes = round_up(round_up(bytes, alignment), page);
  std::byte* const pages = map_pages(page_bytes, -1);
  if (pages == nullptr) return nullptr;
  std::memset(pages, unset, page_bytes);
  return keep({pages + page_bytes - round_up(bytes, alignment), bytes, device, false, pages, page_bytes, nullptr, -1});
}
std::byte* allocate_in_file(int device, std::size_t bytes) {
  if (!has_room(device, bytes)) return nullptr;
  const std::size_t page_bytes = round_up(bytes, page);
  const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(page_bytes)) != 0) return nullptr;
  std::byte* const pages = map_pages(page_bytes, file);
  if (pages == nullptr) return nullptr;
  std::memset(pages, unset, page_bytes);
  return keep({pages, bytes, device, false, pages, page_bytes, nullptr, file});
}
std::byte* map_file(int file, std::size_t bytes) {
  const std::size_t page_bytes = round_up(bytes, page);
  std::byte* const pages = map_pages(page_bytes, file);
  return pages == nullptr ? nullptr : keep({pages, bytes, of_no_gpu, false, pages, page_bytes, nullptr, file});
}

void write_memory(void* to, const void* from, std::size_t bytes) {
  const Allocation& allocation = *allocation_at(to);
  set_access(allocation, PROT_READ | PROT_WRITE);
  std::memcpy(to, from, bytes);
  set_access(allocation, PROT_NONE);
}

void release_memory(void* first) {
  Allocation* const found = allocation_at(first);
  if (found == nullptr || found->first != first || found->freed)
    refuse("cudaFree of what is not allocated: " + place_of(first));
  found->freed = true;
  unpoison(found->pages, found->page_bytes);
  // Returns the pages to the system, including file mappings.
  mmap(found->pages, found->page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  close_file(*found);
}

Allocation* allocation_at(const void* address) noexcept {
  const auto* const at = static_cast<const std::byte*>(address);
  auto after = allocations.upper_bound(at);
  if (after == allocations.begin()) return nullptr;
  Allocation& allocation = (--after)->second;
  return at < allocation.pages + allocation.page_bytes + page ? &allocation : nullptr;
}

bool is_device_memory(const void* first, std::size_t bytes) noexcept {
  const Allocation* const allocation = allocation_at(first);
  const auto* const at = static_cast<const std::byte*>(first);
  return allocation != nullptr && !allocation->freed && at >= allocation->first && at + bytes <= end_of(*allocation);
}

std::string place_of(const void* address) {
  const Allocation* const allocation = allocation_at(address);
  if (allocation == nullptr) return "memory of the host";
  const auto byte = static_cast<const std::byte*>(address) - allocation->first;
  return std::string(allocation->freed ? "freed " : "") + "memory of GPU " + std::to_string(allocation->device) +
         ", byte " + std::to_string(byte) + " of " + std::to_string(allocation->bytes);
}

std::size_t memory_in_use(int device) noexcept {
  std::size_t bytes = 0;
  for (const auto& [pages, allocation] : allocations)
    if (!allocation.freed && allocation.device == device) bytes += allocation.bytes;
  return bytes;
}
std::size_t live_allocations() noexcept {
  return static_cast<std::size_t>(
      std::count_if(allocations.begin(), allocations.end(), [](const auto& each) { return !each.second.freed; }));
}

OpenedMemory::OpenedMemory(const Operation& operation) : operation_(operation) { install_handler(); }
OpenedMemory::~OpenedMemory() {
  for (const Allocation* allocation = opened; allocation != nullptr; allocation = allocation->next_open) {
    std::byte* const end = end_of(*allocation);
    const std::size_t rest = rest_of(*allocation);
    unpoison(end, rest);
    for (std::size_t i = 0; i < rest; ++i)
      if (end[i] != static_cast<std::byte>(unset)) refuse(describe(operation_) + " wrote to " + place_of(end + i));
    poison(end, rest);
    set_access(*allocation, PROT_NONE);
  }
  opened = nullptr;
}

void reset_device_memory() {
  for (auto& [pages, allocation] : allocations) {
    unpoison(allocation.pages, allocation.page_bytes);
    munmap(allocation.pages, allocation.page_bytes + page);
    close_file(allocation);
  }
  allocations.clear();
}

}  // namespace fake_cuda
