#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <dist/comm/messages/call_agreement.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/small_messages.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::mpi::detail {

/// Transfers the messages of a CallAgreement.
class CallMessages {
 public:
  using CallAgreement = dist::detail::CallAgreement;

  CallMessages(MPI_Comm comm, int tag, CallAgreement& meeting)
      : comm_(comm),
        tag_(tag),
        meeting_(meeting),
        messages_(std::make_unique<Messages>(meeting.schedule().partners())),
        sends_(meeting.schedule().partners(), MPI_REQUEST_NULL),
        receives_(meeting.schedule().partners(), MPI_REQUEST_NULL) {}
  CallMessages(const CallMessages&) = delete;
  CallMessages& operator=(const CallMessages&) = delete;
  ~CallMessages() {
    if (!is_running() || cancel_receives()) return;
    static auto& kept_until_the_process_ends = *new std::vector<std::unique_ptr<Messages>>;
    kept_until_the_process_ends.push_back(std::move(messages_));
  }

  /// Processes arrived messages, and posts receives for awaited ones.
  void receive() {
    for (std::size_t partner = 0; partner < receives_.size(); ++partner)
      while (receives_[partner] != MPI_REQUEST_NULL || meeting_.wants(partner)) {
        start_receive(partner);
        int done = 0;
        DIST_MPI_CALL(MPI_Test(&receives_[partner], &done, MPI_STATUS_IGNORE));
        if (done == 0) break;
        meeting_.receive(partner, messages_->in[partner]);
      }
  }
  /// Sends a call to a partner; the previous one must have been sent (`are_sent`). Messages about failures may be sent
  /// at any time.
  void send(std::size_t partner, const CallAgreement::Message& message) {
    if (message.settles()) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&message);
      return about_failures_.send(comm_, tag_, {bytes, message.bytes()}, {meeting_.schedule().to(partner)});
    }
    start_receive(partner);  // a posted receive avoids buffering in MPI
    messages_->out[partner] = message;
    DIST_MPI_CALL(MPI_Isend(&messages_->out[partner], static_cast<int>(message.bytes()), MPI_BYTE,
                            static_cast<int>(meeting_.schedule().to(partner)), tag_, comm_, &sends_[partner]));
  }
  [[nodiscard]] bool are_sent() { return are_done(sends_); }
  /// Returns true if no more messages can arrive.
  bool cancel_receives() noexcept {
    bool all = true;
    for (MPI_Request& request : receives_) {
      if (request == MPI_REQUEST_NULL) continue;
      int done = 0;
      all = MPI_Cancel(&request) == MPI_SUCCESS && MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
            done != 0 && all;
    }
    return all;
  }

 private:
  struct Messages {
    explicit Messages(std::size_t partners) : in(partners), out(partners) {}
    std::vector<CallAgreement::Message> in;
    std::vector<CallAgreement::Message> out;
  };

  void start_receive(std::size_t partner) {
    if (receives_[partner] != MPI_REQUEST_NULL || !meeting_.wants(partner)) return;
    DIST_MPI_CALL(MPI_Irecv(&messages_->in[partner], sizeof(CallAgreement::Message), MPI_BYTE,
                            static_cast<int>(meeting_.schedule().from(partner)), tag_, comm_, &receives_[partner]));
  }

  MPI_Comm comm_;
  int tag_;
  CallAgreement& meeting_;
  std::unique_ptr<Messages> messages_;  // per partner
  std::vector<MPI_Request> sends_;
  std::vector<MPI_Request> receives_;
  Outbox about_failures_;
};

}  // namespace dist::mpi::detail
