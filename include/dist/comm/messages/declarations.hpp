#pragma once

namespace dist::detail {

// What policies do between members that pass messages, declared: a program of one process names it in its policies and
// never uses it. A communicator that models PassesMessages includes <dist/comm/messages/message_choice.hpp>, which defines
// all of it.

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
