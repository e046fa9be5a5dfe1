/// `replica.neighbor_exchange`, under every strategy.
#pragma once

#include <dist/comm/hierarchical_neighbor_exchange.hpp>
#include <dist/comm/neighbor_exchange.hpp>
#include <dist/comm/neighbor_message.hpp>
#include <dist/context/replica_context.hpp>

namespace dist {

template <class S>
void ReplicaContext<S>::neighbor_exchange(const MessageList<SendTo>& sends, const MessageList<ReceiveFrom>& receives,
                                          const CommunicationOptions& options) const {
  collective("neighbor_exchange", options,
             [&](const Collectives& ops) { dist::neighbor_exchange(ops, sends.all(), receives.all()); });
}

}  // namespace dist
