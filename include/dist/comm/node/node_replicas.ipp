#pragma once

#include <dist/comm/node/node_replicas.hpp>

namespace dist {

DIST_INLINE void NodeReplicas::send(const NodeCommunicator& node, const CollectiveCall& call,
                                    std::span<const std::byte> bytes) {
  const bool fits = bytes.size() <= NodeCommunicator::exchange_capacity;
  if (fits) {
    node.exchange(call, bytes);
  } else {
    last_ = 1 - last_;
    std::byte* const block = node.template stage<std::byte>(3 + last_, bytes.size()).data();
    std::memcpy(block, bytes.data(), bytes.size());
    node.publish(call, {.read = block});
  }
  incoming_.clear();
  for (std::size_t rank = 0; rank < node.size(); ++rank) {
    const std::byte* const brought =
        fits ? node.template received<std::byte>(rank) : node.template peer<std::byte>(rank);
    incoming_.insert(incoming_.end(), brought, brought + bytes.size());
  }
}

template <class Meet, class Between>
void NodeReplicaCommunicator::in_levels(Meet&& meet, Between&& between) const {
  if (is_one_process()) return meet(here_);
  if (is_one_replica()) {
    meet(node_);
  } else {
    meet(here_);
    if (leads()) between();
    patient_.barrier();
  }
  me().stages.release_retired(group_->window_);
}

DIST_INLINE void NodeReplicaCommunicator::barrier() const {
  in_levels([](const auto& level) { level.barrier(); }, [&] { node_.barrier(); });
}

DIST_INLINE void NodeReplicaCommunicator::publish(const CollectiveCall& call, const Operand& lent) const {
  in_levels([&](const auto& level) { level.publish(call, lent); },
            [&] {
              std::vector<std::byte>& offsets = group_->outgoing_;
              offsets.resize(replicas_ * sizeof(OperandOffsets));
              for (std::size_t replica = 0; replica < replicas_; ++replica) {
                const OperandOffsets of_replica = node_.offsets_of(here_.lent_by(replica));
                std::memcpy(offsets.data() + replica * sizeof(of_replica), &of_replica, sizeof(of_replica));
              }
              group_->send(node_, call, offsets);
            });
}

DIST_INLINE void NodeReplicaCommunicator::exchange_bytes(const CollectiveCall& call,
                                                         std::span<const std::byte> values) const {
  in_levels([&](const auto& level) { level.exchange(call, values); },
            [&] {
              std::vector<std::byte>& of_process = group_->outgoing_;
              of_process.resize(replicas_ * values.size());
              for (std::size_t replica = 0; replica < replicas_ && !values.empty(); ++replica)
                std::memcpy(of_process.data() + replica * values.size(), here_.received<std::byte>(replica),
                            values.size());
              group_->send(node_, call, of_process);
            });
}

}  // namespace dist
