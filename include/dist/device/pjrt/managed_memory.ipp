#pragma once

#include <algorithm>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/pjrt/managed_memory.hpp>

namespace dist::pjrt {

DIST_INLINE void ManagedMemory::Resident::on_device(std::vector<const Buffer*>& parts) {
  const std::lock_guard lock{memory_->of_replicas_[replica_].mutex};
  if (slice_ == nullptr)
    throw InvalidArgument(concat("Variable '", name_, "' was destroyed, but a compiled step uses it"),
                          "its program was compiled for the memory of that variable",
                          "Keep the variable alive as long as the step, or compile the step again");
  if (slice_->current != this) slice_->come_home();
  slice_->current = this;
  try {
    std::vector<Event> transfers;
    for (Held& part : parts_) {
      if (!part.buffer) {
        Upload started =
            start_upload_(memory_->client_, memory_->devices_[replica_], home_ + part.part.offset, part.part.shape);
        part.buffer.emplace(std::move(started.buffer));
        transfers.push_back(std::move(started.transfer));
      }
      parts.push_back(&*part.buffer);
    }
    for (const Event& transfer : transfers) transfer.wait();
  } catch (...) {
    for (Held& part : parts_)
      if (!part.is_newer) part.buffer.reset();  // may differ from the host's data
    throw;
  }
}

DIST_INLINE void ManagedMemory::Resident::replace(std::size_t part, Buffer newest) {
  const std::lock_guard lock{memory_->of_replicas_[replica_].mutex};
  parts_[part].buffer.emplace(std::move(newest));
  parts_[part].is_newer = true;
}

DIST_INLINE bool ManagedMemory::Resident::has(std::span<const Part> parts) const {
  return std::equal(parts.begin(), parts.end(), parts_.begin(), parts_.end(),
                    [](const Part& part, const Held& held) { return part == held.part; });
}

DIST_INLINE void ManagedMemory::Resident::come_home() {
  std::exception_ptr failure;
  const auto attempt = [&](const auto& call) {
    try {
      call();
    } catch (const Error&) {
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<Event> transfers;
  for (const Held& part : parts_)
    if (part.is_newer)
      attempt([&] { transfers.push_back(start_download_(*part.buffer, home_ + part.part.offset, part.part.shape)); });
  for (const Event& transfer : transfers) attempt([&] { transfer.wait(); });
  for (Held& part : parts_) {
    part.is_newer = false;
    part.buffer.reset();  // the host may write
  }
  if (failure) std::rethrow_exception(failure);
}

DIST_INLINE void ManagedMemory::release(std::size_t offset, std::size_t bytes) noexcept {
  for (OfReplica& of_replica : of_replicas_) {
    const std::lock_guard lock{of_replica.mutex};
    const auto found = of_replica.slices.find(offset);
    if (found == of_replica.slices.end()) continue;
    for (const auto& resident : found->second.residents) {
      resident->slice_ = nullptr;
      resident->parts_.clear();
    }
    of_replica.slices.erase(found);
    --of_replica.count;
  }
  host_.release(offset, bytes);
}

DIST_INLINE void ManagedMemory::bring_home(OfReplica& of_replica, std::size_t offset) {
  const std::lock_guard lock{of_replica.mutex};
  if (const auto found = of_replica.slices.find(offset); found != of_replica.slices.end()) found->second.come_home();
}

}  // namespace dist::pjrt
