#pragma once

#include <dist/comm/mpi/agreement.hpp>
#include <dist/core/config.hpp>

namespace dist::mpi::detail {

DIST_INLINE AgreementGroup::AgreementGroup(const Communicator& workers, const AgreementOptions& options)
    : workers_(workers),
      health_(options.health),
      timeout_(dist::detail::longest_wait(options.timeout)),
      polls_(workers.rank(), workers.size()) {
  permit_.require("an agreement of workers");
  MPI_Request request = MPI_REQUEST_NULL;
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  DIST_MPI_CALL(MPI_Comm_idup(workers.native(), made.get(), &request));
  try {
    wait({&request, 1}, "The creation of an agreement", options.timeout, health_);
  } catch (...) {
    static_cast<void>(made.release());  // MPI may still write to it
    throw;
  }
  comm_ = *made;
  departures_ = std::make_unique<ShutdownNotice>(comm_, departure_tag);
  DIST_MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  // No member continues before all have the communicator, because creating it may need all.
  const std::uint64_t first = begin();
  ask(first, false);
  settle(first);
  end(first);
}

DIST_INLINE AgreementGroup::~AgreementGroup() {
  if (!is_running()) return;
  try {
    if (std::uncaught_exceptions() == 0)
      ShutdownNotice::leave(std::move(departures_));
    else
      departures_.release()->leave_at_finalize();
  } catch (...) {
    // The others reach their deadline.
  }
}

DIST_INLINE void AgreementGroup::ask(std::uint64_t pass, bool holds) {
  permit_.require("an agreement of workers");
  polls_.ask(pass, holds, [this](std::size_t partner, const Message& message) { send(partner, message); });
}

DIST_INLINE void AgreementGroup::settle(std::uint64_t pass) {
  wait_until(pass, [&] { return polls_.is_settled(pass); });
}

DIST_INLINE bool AgreementGroup::is_settled(std::uint64_t pass) {
  take(pass);
  return polls_.is_settled(pass);
}

DIST_INLINE bool AgreementGroup::answer(std::uint64_t pass) {
  wait_until(pass, [&] { return polls_.knows_answer(pass); });
  return polls_.answer(pass);
}

DIST_INLINE void AgreementGroup::fail(std::uint64_t pass, std::string_view why) {
  if (const std::optional<Message> message = polls_.fail(pass, why)) send_to_all(*message);
}

DIST_INLINE std::span<const std::byte> AgreementGroup::bytes_of(const Message& message) noexcept {
  return {reinterpret_cast<const std::byte*>(&message), message.bytes()};
}

DIST_INLINE void AgreementGroup::send(std::size_t partner, const Message& message) {
  outbox_.send(comm_, message_tag, bytes_of(message), {polls_.schedule().to(partner)});
}

DIST_INLINE void AgreementGroup::send_to_all(const Message& message) {
  std::vector<std::size_t> peers;
  for (std::size_t peer = 0; peer < workers_.size(); ++peer)
    if (peer != workers_.rank()) peers.push_back(peer);
  outbox_.send(comm_, message_tag, bytes_of(message), peers);
}

DIST_INLINE void AgreementGroup::take(std::uint64_t pass) {
  take_messages<Message>(comm_, message_tag, [&](std::size_t, const Message& message) { polls_.hear(message); });
  polls_.advance(pass, [this](std::size_t partner, const Message& message) { send(partner, message); });
}

DIST_INLINE void AgreementGroup::look(std::uint64_t pass) {
  workers_.look_for_failures();
  departures_->look();
  take(pass);  // sent by a member before it left
  std::optional<std::size_t> left;
  polls_.for_each_awaited(pass, [&](std::size_t peer, std::size_t) {
    if (departures_->has_left(peer)) left = peer;
  });
  if (left && polls_.find_stop(pass) == nullptr) stop(pass, Polls::Kind::left, *left);
  if (const Message* const stop = polls_.find_stop(pass)) throw_stopped(*stop);
  if (health_ == nullptr) return;
  for_each_missing(pass, [&](std::size_t peer, bool) { health_->look(workers_.worker(peer)); });
}

DIST_INLINE void AgreementGroup::fail_late(std::uint64_t pass, bool knows_no_better) {
  constexpr std::size_t most_names = 8;
  std::string names;
  std::size_t count = 0;
  std::optional<std::size_t> late;
  for_each_missing(pass, [&](std::size_t peer, bool is_certain) {
    if (is_certain) late = peer;
    if (++count <= most_names) names += concat(names.empty() ? "" : ", ", place(peer));
  });
  if (late) {
    stop(pass, Polls::Kind::late, *late);
    throw_late(place(*late));
  }
  if (count > most_names) names += concat(" and ", count - most_names, " others");
  if (knows_no_better) throw_late(concat("at least one of ", names));
}

DIST_INLINE std::string AgreementGroup::place(std::size_t peer) const {
  return concat("worker ", workers_.worker(peer), " on host ", workers_.host(peer));
}

DIST_INLINE std::string AgreementGroup::name(std::size_t peer) const {
  return concat("worker ", workers_.worker(peer), " (host ", workers_.host(peer), ")");
}

DIST_INLINE void AgreementGroup::throw_stopped(const Message& stop) {
  if (stop.kind == Polls::Kind::late) throw_late(place(stop.who));
  if (stop.kind == Polls::Kind::left)
    throw CollectiveMismatch("The workers do not run the same loops over distributed data",
                             concat(name(workers_.rank()), " asks the other workers whether there is a next step, but ",
                                    name(stop.who), " has ended its strategy"),
                             "Let all workers run the same loops, and end together");
  workers_.look_for_failures(true);  // its notice to the group is more precise
  throw PeerError(workers_.worker(stop.who), workers_.host(stop.who), stop.why.data());
}

DIST_INLINE void AgreementGroup::throw_late(std::string_view missing) const {
  throw DeadlineExceeded("The workers did not agree in time on whether there is a next step",
                         concat("no message from ", missing, " in ", std::chrono::nanoseconds{timeout_}),
                         "Let all workers run the same loops over distributed data, or give a longer timeout");
}

}  // namespace dist::mpi::detail

namespace dist::mpi {

DIST_INLINE Agreement::Pass Agreement::begin() const {
  group_->set_thrown_by_data({});
  return Pass{group_};
}

DIST_INLINE void Agreement::cancel(std::string_view why) const noexcept {
  try {
    const std::uint64_t pass = group_->begin();
    group_->fail(pass, why);
    group_->end(pass);
  } catch (...) {
    // The others reach their deadline.
  }
}

}  // namespace dist::mpi
