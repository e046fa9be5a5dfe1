#pragma once

#include <algorithm>

#include <sched.h>

#include <dist/comm/node/communicator.hpp>
#include <dist/core/text.hpp>

namespace dist {

namespace detail {

DIST_INLINE std::byte* Stages::at(Arena& window, int which, std::size_t bytes) {
  Stage& stage = stages_[which];
  if (stage.bytes < bytes) {
    retired_.reserve(retired_.size() + 1);
    retire(std::exchange(stage, {window.allocate(bytes), bytes}));
  }
  return window.at(0, stage.place);
}

DIST_INLINE void Stages::retire() {
  for (Stage& stage : stages_) retire(std::exchange(stage, {}));
}

DIST_INLINE void Stages::release(Arena& window) noexcept {
  for (const Stage& stage : retired_) window.release(stage.place, stage.bytes);
  retired_.clear();
}

DIST_INLINE void Stages::retire(const Stage& stage) {
  if (stage.bytes != 0) retired_.push_back(stage);
}

}  // namespace detail

template <class E>
void NodeGroup::break_with(const E& error) {
  broken_ = std::make_exception_ptr(error);
  throw error;
}

DIST_INLINE NodeGroup::NodeGroup(SharedMemory& mine, Arena& window, std::size_t rank, std::size_t worker,
                                 std::string host, std::vector<Peer> peers, PeerHealth& health,
                                 detail::SpinBudget budget, std::chrono::nanoseconds timeout, std::size_t group)
    : rank_(rank),
      mailboxes_at_(mailboxes_at(group)),
      window_(window),
      health_(health),
      timeout_(detail::longest_wait(timeout)),
      boxes_({this}, budget) {
  static_assert(sizeof(Member) <= header_bytes / most_groups);
  DIST_EXPECT(group < most_groups);
  workers_.push_back({worker, std::move(host), std::span<std::byte>{mine.data(), mine.size()}});
  for (Peer& peer : peers) {
    workers_.push_back({peer.worker, std::move(peer.host), {peer.memory.data(), peer.memory.size()}});
    attached_.push_back(std::move(peer.memory));
  }
  std::rotate(workers_.begin(), workers_.begin() + 1, workers_.begin() + 1 + static_cast<std::ptrdiff_t>(rank));
}

DIST_INLINE NodeGroup::~NodeGroup() {
  mine().departed.store(true);
  member(0).arrivals.notify();
}

DIST_INLINE std::byte* NodeGroup::stage(int which, std::size_t bytes) {
  settle(timeout_);
  return stages_.at(window_, which, bytes);
}

DIST_INLINE void NodeGroup::cancel(const FailureNotice& notice) noexcept {
  if (size() == 1 || all_know_ || place().is_alone()) return;
  ++entered_;
  if (abandoned_from_ == 0) abandoned_from_ = entered_;
  all_know_ = true;
  left_early_ = true;
  Mailbox& box = mailbox(rank_);
  box.record = CollectiveCallRecord{};
  const CallSequence::Position here = place().position();
  mine().failed_at[entered_ % most_places] = notice.is_last() ? CallSequence::behind_all : here;
  failures_.note({{entered_, here, notice}, rank_});
  // Only most_notices texts are stored, which peers may be reading: further failures repeat earlier texts.
  if (entered_ - abandoned_from_ < most_notices) mine().failures[entered_ % most_notices] = notice;
  box.failed_from.store(abandoned_from_, std::memory_order_relaxed);
  boxes_.announce_failure(rank_, entered_);
}

DIST_INLINE void NodeGroup::record(CollectiveCall call) noexcept {
  call.structure = structure_;
  call.place = place().mark();
  mailbox(rank_).record = CollectiveCallRecord{call};
}

DIST_INLINE CallSequence::Position NodeGroup::place_of_failure(std::size_t peer) const noexcept {
  const Member& failed = member(peer);
  const CallSequence::Position at = failed.failed_at[entered_ % most_places];
  for (const Mailbox& box : failed.mailboxes)
    if (static_cast<std::int32_t>(box.sequence.load() - entered_) >= static_cast<std::int32_t>(most_places))
      return CallSequence::behind_all;  // a later failure has overwritten this entry
  return at;
}

DIST_INLINE NodeGroup::NoticeFrom NodeGroup::failure_of(std::size_t peer) const noexcept {
  return {{entered_, place_of_failure(peer), member(peer).failures[entered_ % most_notices]}, peer};
}

DIST_INLINE void NodeGroup::skip_or_refuse(std::size_t peer) {
  const NoticeFrom told = failure_of(peer);
  if (!failures_.skip(told)) refuse_failed(told);
}

DIST_INLINE void NodeGroup::settle(std::int64_t timeout) {
  if (broken_) std::rethrow_exception(broken_);
  if (!left_early_) return;
  for (std::size_t peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    detail::MailboxWait wait{timeout};
    if (!boxes_.arrives_soon(peer, entered_, wait)) await_slowly(peer, timeout, wait);
    if (is_abandoned(mailbox(peer))) failures_.note(failure_of(peer));
  }
  left_early_ = false;
}

DIST_INLINE void NodeGroup::await_slowly(std::size_t peer, std::int64_t timeout, const detail::MailboxWait& wait) {
  SlowWait slow;
  boxes_.await_slowly(rank_, peer, entered_, [&] {
    const bool departed = member(peer).departed.load();
    if (departed && !arrived(peer)) refuse_departed(peer);
    look(peer);
    if (wait.is_over()) fail(peer, timeout);
  });
}

DIST_INLINE void NodeGroup::look(std::size_t peer) {
  SlowWait::note_innermost([&] { return concat("for ", name(peer), " in ", describe(mailbox(rank_).record.call())); });
  const std::optional<LostPeer> lost = health_.find_lost(workers_[peer].worker);
  if (!lost || (lost->in_order && arrived(peer))) return;
  // Prefer a member's notice to the loss of a process: the process may have ended because of another lost member.
  for (std::size_t other = 0; other < size(); ++other)
    if (other != rank_)
      for (const Mailbox& box : member(other).mailboxes) {
        const bool is_old = left_early_ || static_cast<std::int32_t>(box.sequence.load() - entered_) < 0;
        const std::uint32_t from = box.failed_from.load(std::memory_order_relaxed);
        if (is_old || from == 0) continue;
        if (!is_abandoned(box))
          raise_of({{from, CallSequence::behind_all, member(other).failures[from % most_notices]}, other});
        if (const NoticeFrom told = failure_of(other); !place().is_past(told.notice.place)) refuse_failed(told);
      }
  break_with(unavailable(*lost));
}

DIST_INLINE std::string NodeGroup::name(std::size_t rank) const {
  return concat("worker ", workers_[rank].worker, " (host ", workers_[rank].host, ")");
}

DIST_INLINE std::string NodeGroup::described(std::size_t rank) const {
  const CollectiveCall call = mailbox(rank).record.call();
  return concat(name(rank), call.operation.empty() ? " failed" : concat(" called ", describe(call)), " as step ",
                entered_, " of the collectives of this node");
}

DIST_INLINE std::string NodeGroup::last_call() const {
  if (entered_ == 1) return "last collective: none";
  return concat("last collective: ", describe(mine().mailboxes[(entered_ - 1) % 2].record.call()));
}

DIST_INLINE void NodeGroup::refuse_failed(const NoticeFrom& told) {
  failures_.note(told);
  raise_of(told);
}

DIST_INLINE void NodeGroup::raise_of(const NoticeFrom& told) {
  left_early_ = true;
  const NoticeFrom& failure = failures_.more_precise(told);
  raise(failure, failure.notice.failure.breaks_the_group());
}

DIST_INLINE void NodeGroup::raise(const NoticeFrom& told, bool breaks) {
  all_know_ = true;
  try {
    told.notice.failure.raise(workers_[told.peer].worker, workers_[told.peer].host);
  } catch (...) {
    if (breaks) broken_ = std::current_exception();
    throw;
  }
}

DIST_INLINE void NodeGroup::refuse_different() {
  all_know_ = true;
  left_early_ = true;
  place().disturb();
  std::size_t peer = 0;
  while (mailbox(peer).fingerprint == mailbox(rank_).fingerprint) ++peer;
  if (is_abandoned(mailbox(peer))) refuse_failed(failure_of(peer));  // it gave up after this member saw it
  throw mismatch_with(peer);
}

DIST_INLINE CollectiveMismatch NodeGroup::mismatch_with(std::size_t peer) const {
  return detail::different_calls("worker", mailbox(rank_).record.call(), described(rank_), mailbox(peer).record.call(),
                                 described(peer));
}

DIST_INLINE void NodeGroup::refuse_departed(std::size_t peer) {
  if (const FailureNotice* const before = failures_.skipped_of(peer)) raise({{entered_, {}, *before}, peer}, true);
  break_with(detail::worker_left(name(peer), described(rank_), last_call()));
}

DIST_INLINE void NodeGroup::fail(std::size_t peer, std::int64_t timeout) {
  if (left_early_) refuse_late(peer, timeout);
  constexpr std::int64_t second = 1'000'000'000;
  std::atomic<std::uint32_t>& giving_up = member(0).giving_up;
  detail::MailboxWait wait{second};
  wait.begin();
  while (giving_up.exchange(1) != 0 && !wait.is_over()) sched_yield();  // a member that is giving up may die
  const bool gave_up = boxes_.fail_unless_all_came(rank_, entered_, [&] {
    try {
      refuse_late(peer, timeout);
    } catch (const std::exception& error) {
      all_know_ = true;
      abandoned_from_ = entered_;
      mine().failed_at[entered_ % most_places] = CallSequence::behind_all;
      mine().failures[entered_ % most_notices] = FailureNotice{error}.for_good();
      mailbox(rank_).fingerprint = boxes_.failure;
      mailbox(rank_).failed_from.store(entered_, std::memory_order_relaxed);
    }
  });
  giving_up.store(0);
  if (gave_up) std::rethrow_exception(broken_);
}

DIST_INLINE void NodeGroup::refuse_late(std::size_t peer, std::int64_t timeout) {
  std::string missing;
  for (std::size_t other = 0; other < size(); ++other) {
    if (other == rank_) continue;
    if (!arrived(other))
      missing += concat(missing.empty() ? "" : ", ", name(other));
    else if (!left_early_ && !is_abandoned(mailbox(other)) && mailbox(other).fingerprint != mailbox(rank_).fingerprint)
      break_with(mismatch_with(other));  // more precise than the list of missing members
  }
  if (missing.empty()) missing = name(peer);
  break_with(detail::workers_missing(missing, described(rank_), timeout, last_call()));
}

}  // namespace dist
