// Model.fit of a table, with callbacks and files.
#include "table.hpp"

#include <cstddef>
#include <cstdio>

#include <dist/train/callbacks/model_checkpoint.hpp>
#include <dist/train/callbacks/tensor_board.hpp>

int main() try {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  auto all = table("table.csv") | data::cache();
  const Statistics statistics = statistics_of(all | data::take(4000));
  auto train = all | data::take(4000) | to_example(statistics) | data::cache() | data::shuffle(4000, 1) |
               data::batch(64) | data::prefetch(2);
  auto validation = all | data::skip(4000) | to_example(statistics) | data::batch(64);

  nn::Network<Net, nn::OneDnn> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::Adam{}, nn::MeanSquaredError{}, nn::MeanOf{nn::MeanAbsoluteError{}}};
  std::printf("%s", model.summary().c_str());
  const nn::History history = model.fit(
      train, {.epochs = 30, .validation = validation},
      nn::callbacks::EarlyStopping{{.patience = 4, .restore_best_weights = true}},
      nn::callbacks::ModelCheckpoint{"checkpoints/best", {.save_best_only = true}},
      nn::callbacks::ReduceLROnPlateau{{.factor = 0.5, .patience = 2}}, nn::callbacks::TensorBoard{"logs"},
      nn::callbacks::LearningRateScheduler{[](std::size_t epoch, float rate) { return epoch < 3 ? 1e-3f : rate; }});
  const nn::Logs logs = model.evaluate(validation);
  std::printf("loss %.6f, error %.6f\n", logs["loss"], logs["mean_absolute_error"]);
  const auto predictions = model.predict(validation, {.verbose = 0});
  std::printf("%s predictions\n", dist::to_string(predictions.shape()).c_str());
  model.save("saved");
  model.save_weights("net.safetensors");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
