#include "shared_clique.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "../fake_cuda/refusal.hpp"

namespace fake_nccl {
namespace {

/// The content of an id: the process that made it, and its file.
struct Place {
  std::uint64_t process;
  std::uint64_t file;
};
Place place_in(const ncclUniqueId& id) {
  Place place{};
  std::memcpy(&place, id.internal, sizeof(place));
  return place;
}

}  // namespace

SharedClique::SharedClique() : file_(memfd_create("fake_nccl", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0)
    fake_cuda::refuse("the fake NCCL gets no memory for ranks of several processes");
  map();
}
SharedClique::SharedClique(const ncclUniqueId& id) {
  const Place place = place_in(id);
  const std::string path = "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.file);
  file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0)
    fake_cuda::refuse(
        "ncclCommInitRankConfig with an id that ncclGetUniqueId did not make, or of a process "
        "that has ended");
  map();
}
SharedClique::~SharedClique() {
  munmap(header_, bytes);
  close(file_);
}

void SharedClique::map() {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (memory == MAP_FAILED) fake_cuda::refuse("the fake NCCL cannot map the memory of ranks of several processes");
  header_ = static_cast<Header*>(memory);
}

ncclUniqueId SharedClique::id() const {
  ncclUniqueId id{};
  const Place place{static_cast<std::uint64_t>(getpid()), static_cast<std::uint64_t>(file_)};
  std::memcpy(id.internal, &place, sizeof(place));
  return id;
}
bool SharedClique::is_own(const ncclUniqueId& id) {
  return place_in(id).process == static_cast<std::uint64_t>(getpid());
}

bool SharedClique::come(std::size_t rank, std::size_t ranks, std::uint64_t gpu) {
  if (ranks > most_ranks) fake_cuda::refuse("the fake NCCL takes " + std::to_string(most_ranks) + " ranks at most");
  std::uint64_t none = 0;
  if (!header_->ranks.compare_exchange_strong(none, ranks) && none != ranks) return false;
  std::uint64_t nobody = 0;
  return header_->of[rank].gpu.compare_exchange_strong(nobody, gpu + 1);
}
bool SharedClique::have_all_come() const {
  for (std::size_t rank = 0; rank < header_->ranks.load(); ++rank)
    if (header_->of[rank].gpu.load() == 0) return false;
  return true;
}
bool SharedClique::has_gpu_twice() const {
  for (std::size_t rank = 0; rank < header_->ranks.load(); ++rank)
    for (std::size_t other = 0; other < rank; ++other)
      if (header_->of[rank].gpu.load() == header_->of[other].gpu.load()) return true;
  return false;
}

bool SharedClique::may_bring(std::uint64_t number) const {
  for (std::size_t rank = 0; rank < header_->ranks.load(); ++rank)
    if (header_->of[rank].taken.load() + 1 < number) return false;
  return true;
}
void SharedClique::bring(std::size_t rank, std::uint64_t number, const SharedCall& call,
                         std::span<const std::byte> given) {
  if (given.size() > most_bytes)
    fake_cuda::refuse("the fake NCCL takes " + std::to_string(most_bytes) + " bytes of a rank between processes, not " +
                      std::to_string(given.size()));
  Rank& mine = header_->of[rank];
  mine.last[number % 2] = {call, given.size()};
  if (!given.empty()) std::memcpy(values(rank, number), given.data(), given.size());
  mine.brought.store(number + 1);
}
bool SharedClique::have_all_brought(std::uint64_t number) const {
  for (std::size_t rank = 0; rank < header_->ranks.load(); ++rank)
    if (header_->of[rank].brought.load() <= number) return false;
  return true;
}
const SharedCall& SharedClique::call_of(std::size_t rank, std::uint64_t number) const {
  return header_->of[rank].last[number % 2].call;
}
std::span<const std::byte> SharedClique::brought_by(std::size_t rank, std::uint64_t number) const {
  return {values(rank, number), header_->of[rank].last[number % 2].bytes};
}
void SharedClique::take(std::size_t rank, std::uint64_t number) { header_->of[rank].taken.store(number + 1); }

void SharedClique::come_for(std::size_t from, std::size_t to, std::uint64_t number) {
  header_->between[from][to].come_for.store(number + 1);
}
bool SharedClique::has_come_for(std::size_t from, std::size_t to, std::uint64_t number) const {
  return header_->between[from][to].come_for.load() > number;
}
bool SharedClique::may_send(std::size_t from, std::size_t to, std::uint64_t number) const {
  return header_->between[from][to].taken.load() + most_messages > number;
}
void SharedClique::send(std::size_t from, std::size_t to, std::uint64_t number, const SharedCall& call,
                        std::span<const std::byte> given) {
  if (given.size() > most_message_bytes)
    fake_cuda::refuse("the fake NCCL takes messages of " + std::to_string(most_message_bytes) +
                      " bytes between processes, not " + std::to_string(given.size()));
  Channel& channel = header_->between[from][to];
  channel.last[number % most_messages] = {call, given.size()};
  if (!given.empty()) std::memcpy(values(from, to, number), given.data(), given.size());
  channel.sent.store(number + 1);
}
bool SharedClique::is_sent(std::size_t from, std::size_t to, std::uint64_t number) const {
  return header_->between[from][to].sent.load() > number;
}
const SharedCall& SharedClique::call_of_message(std::size_t from, std::size_t to, std::uint64_t number) const {
  return header_->between[from][to].last[number % most_messages].call;
}
std::span<const std::byte> SharedClique::message(std::size_t from, std::size_t to, std::uint64_t number) const {
  return {values(from, to, number), header_->between[from][to].last[number % most_messages].bytes};
}
void SharedClique::take_message(std::size_t from, std::size_t to, std::uint64_t number) {
  header_->between[from][to].taken.store(number + 1);
}
bool SharedClique::may_come_to(std::uint64_t number) const {
  for (std::size_t rank = 0; rank < header_->ranks.load(); ++rank)
    if (header_->of[rank].host_left.load() < number) return false;
  return true;
}
void SharedClique::come_to(std::uint64_t number, std::size_t rank, const SharedHostCall& call) {
  header_->of[rank].host_call = call;
  header_->of[rank].host_came.store(number + 1);
}
bool SharedClique::have_all_come_to(std::uint64_t number) const {
  for (std::size_t rank = 0; rank < header_->ranks.load(); ++rank)
    if (header_->of[rank].host_came.load() <= number) return false;
  return true;
}
const SharedHostCall& SharedClique::host_call_of(std::size_t rank) const { return header_->of[rank].host_call; }
void SharedClique::leave(std::uint64_t number, std::size_t rank) { header_->of[rank].host_left.store(number + 1); }

void SharedClique::abort() { header_->is_aborted.store(1); }
bool SharedClique::is_aborted() const { return header_->is_aborted.load() != 0; }

std::byte* SharedClique::values(std::size_t rank, std::uint64_t number) const {
  return reinterpret_cast<std::byte*>(header_ + 1) + (2 * rank + number % 2) * most_bytes;
}
std::byte* SharedClique::values(std::size_t from, std::size_t to, std::uint64_t number) const {
  return values(most_ranks, 0) +
         ((from * most_ranks + to) * most_messages + number % most_messages) * most_message_bytes;
}

}  // namespace fake_nccl
