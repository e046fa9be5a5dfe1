#pragma once

#include <utility>

#include <dist/train/callbacks.hpp>

namespace dist::nn::callbacks {

/// A callback with one hook, which calls a function. The function takes the arguments of the hook, or the model and
/// these:
///
///     nn::callbacks::lambda<nn::hooks::on_epoch_end>([](const nn::Epoch& epoch, nn::Logs& logs) { … })
template <class Hook, class Fn>
[[nodiscard]] auto lambda(Fn function) {
  return typename Hook::template Calling<Fn>{std::move(function)};
}

}  // namespace dist::nn::callbacks
