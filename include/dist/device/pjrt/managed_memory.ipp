#pragma once

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <dist/device/pjrt/managed_memory.hpp>

namespace dist::pjrt {

DIST_INLINE_PJRT void ManagedMemory::Resident::on_device(std::vector<const Buffer*>& parts) {
  const std::lock_guard lock{memory_->mutex_};
  if (slice_->current != this) slice_->come_home();
  slice_->current = this;
  for (Held& part : parts_) {
    if (!part.buffer)
      part.buffer.emplace(upload_(memory_->client_, device_, home_ + part.part.offset, part.part.shape));
    parts.push_back(&*part.buffer);
  }
}

DIST_INLINE_PJRT void ManagedMemory::Resident::replace(std::size_t part, Buffer newest) {
  const std::lock_guard lock{memory_->mutex_};
  parts_[part].buffer.emplace(std::move(newest));
  parts_[part].is_newer = true;
}

DIST_INLINE_PJRT bool ManagedMemory::Resident::has(std::span<const Part> parts) const {
  return std::equal(parts.begin(), parts.end(), parts_.begin(), parts_.end(),
                    [](const Part& part, const Held& held) { return part == held.part; });
}

DIST_INLINE_PJRT void ManagedMemory::Resident::come_home() {
  std::vector<Event> transfers;
  for (const Held& part : parts_)
    if (part.is_newer) transfers.push_back(start_download_(*part.buffer, home_ + part.part.offset, part.part.shape));
  for (const Event& transfer : transfers) transfer.wait();
  for (Held& part : parts_) {
    part.is_newer = false;
    part.buffer.reset();  // as the host may write
  }
}

DIST_INLINE_PJRT void ManagedMemory::release(std::size_t offset, std::size_t bytes) noexcept {
  {
    const std::lock_guard lock{mutex_};
    for (auto& of_replica : slices_) count_ -= of_replica.erase(offset);
  }
  host_.release(offset, bytes);
}

DIST_INLINE_PJRT void ManagedMemory::bring_home(std::size_t replica, std::size_t offset) const {
  const std::lock_guard lock{mutex_};
  if (const auto found = slices_[replica].find(offset); found != slices_[replica].end()) found->second.come_home();
}

}  // namespace dist::pjrt
