#pragma once

namespace dist::detail {

// Forward declarations of message algorithms, which the policies of programs with one process name, but never use.
// <dist/comm/messages/message_choice.hpp> defines them; headers of models of PassesMessages include it.

template <class C, class Algorithm>
class MessageCollectives;

template <class C>
class MessageTree;
template <class C>
class MessageDoubling;
template <class C>
class MessageRing;
template <class C>
class MessageChoice;

}  // namespace dist::detail
