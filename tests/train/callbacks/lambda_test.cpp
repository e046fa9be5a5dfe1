#include <dist/train/callbacks/lambda.hpp>

#include <string>

#include <doctest/doctest.h>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::lambda;

TEST_CASE("lambda makes callbacks with one hook, with or without the model") {
  small::Model trained;
  std::string record;
  trained.model.fit(
      small::examples(), {.epochs = 3, .verbose = 0}, lambda<nn::hooks::on_train_begin>([&] { record += "["; }),
      lambda<nn::hooks::on_epoch_begin>([&](const nn::Epoch& epoch) { record += std::to_string(epoch.index); }),
      lambda<nn::hooks::on_epoch_end>([&](auto& model, const nn::Epoch& epoch, nn::Logs&) {
        if (epoch.index == 1) model.stop_training();
      }),
      lambda<nn::hooks::on_train_end>([&](const nn::Logs& logs) { record += logs.size() == 2 ? "]" : "?"; }));
  CHECK(record == "[01]");
}
