#pragma once

#include <utility>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/communicator_state.hpp>

namespace dist::mpi {

DIST_INLINE Communicator::Communicator(CommRef comm, CommunicatorOptions options)
    : state_(std::make_shared<detail::CommunicatorState>(comm, std::move(options))),
      timeout_(state_->timeout()),
      checks_(state_->options().checks) {}

DIST_INLINE Communicator Communicator::with_timeout(std::chrono::nanoseconds timeout) const {
  Communicator changed = *this;
  changed.timeout_ = dist::detail::longest_wait(timeout);
  return changed;
}

DIST_INLINE Communicator Communicator::with_checks(CollectiveChecks checks) const {
  Communicator changed = *this;
  changed.checks_ = checks;
  return changed;
}

DIST_INLINE std::size_t Communicator::rank() const noexcept { return state_->rank(); }

DIST_INLINE std::size_t Communicator::size() const noexcept { return state_->size(); }

DIST_INLINE std::size_t Communicator::worker(std::size_t rank) const noexcept { return state_->worker(rank); }

DIST_INLINE std::string_view Communicator::host(std::size_t rank) const noexcept { return state_->host(rank); }

DIST_INLINE MPI_Comm Communicator::native() const noexcept { return state_->native(); }

DIST_INLINE Watchdog* Communicator::watchdog() const noexcept { return state_->options().watchdog; }

DIST_INLINE std::optional<Communicator> Communicator::split(std::optional<std::size_t> part,
                                                            CommunicatorOptions options) const {
  MPI_Comm of_part = MPI_COMM_NULL;
  {
    const CollectiveCall call{.operation = "MPI_Comm_split"};
    const Watchdog::Guard guard{options.watchdog, call};
    DIST_MPI_CALL(
        MPI_Comm_split(native(), part ? static_cast<int>(*part) : MPI_UNDEFINED, static_cast<int>(rank()), &of_part));
  }
  if (of_part == MPI_COMM_NULL) return std::nullopt;
  std::optional<Communicator> group{std::in_place, mpi::ref(of_part), std::move(options)};
  DIST_MPI_CALL(MPI_Comm_free(&of_part));  // the group has a duplicate
  return group;
}

DIST_INLINE Communicator Communicator::duplicate(CommunicatorOptions options) const {
  return Communicator{mpi::ref(native()), std::move(options)};
}

DIST_INLINE bool Communicator::any_thread_may_communicate() { return ThreadPermit{}.level() == ThreadLevel::multiple; }

DIST_INLINE void Communicator::watch_processes(PeerHealth& health) const { state_->watch_processes(health); }

DIST_INLINE void Communicator::barrier() const {
  state_->require_usable("barrier");
  if (size() > 1) state_->meet({.operation = "barrier"}, timeout_);
}

DIST_INLINE void Communicator::announce(const CollectiveCall& call) const {
  state_->require_usable(call.operation);
  if (size() == 1) return;
  if (checks_ == CollectiveChecks::none) return state_->count(call.operation);
  state_->meet(call, timeout_);
}

DIST_INLINE void Communicator::look_for_failures(bool between_collectives) const {
  if (checks_ != CollectiveChecks::none && size() > 1) state_->look_for_failures(between_collectives);
}

DIST_INLINE bool Communicator::is_broken() const noexcept { return state_->is_broken(); }

DIST_INLINE void Communicator::begin_run(std::uint64_t kind) const noexcept { state_->place().begin_run(kind); }
DIST_INLINE void Communicator::begin_alone() const noexcept { state_->place().begin_alone(); }
DIST_INLINE void Communicator::end_run() const noexcept { state_->place().end_run(); }
DIST_INLINE void Communicator::begin_call() const noexcept { state_->place().begin_call(); }

DIST_INLINE void Communicator::set_structure(std::uint64_t structure) const noexcept {
  state_->set_structure(structure);
}

DIST_INLINE void Communicator::begin_attempt() const noexcept { state_->begin_attempt(); }

DIST_INLINE void Communicator::cancel(const FailureNotice& notice) const noexcept { state_->cancel(notice); }

DIST_INLINE Communicator::Transfer Communicator::start_send(std::span<const std::byte> bytes, std::size_t to) const {
  return state_->start_send(bytes, to);
}

DIST_INLINE Communicator::Transfer Communicator::start_receive(std::span<std::byte> bytes, std::size_t from) const {
  return state_->start_receive(bytes, from);
}

DIST_INLINE void Communicator::wait(Transfer& transfer) const { state_->wait(transfer, timeout_); }

DIST_INLINE std::byte* Communicator::scratch(std::size_t which, std::size_t bytes) const {
  return state_->scratch(which, bytes);
}

}  // namespace dist::mpi
