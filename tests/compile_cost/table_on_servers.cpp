// Model.fit of a table on parameter servers.
#include "table.hpp"

#include <cstddef>
#include <cstdio>

#include <dist/cluster.hpp>
#include <dist/parameter_server.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/train/callbacks/model_checkpoint.hpp>

int main() try {
  const dist::TfConfigResolver resolver;
  if (dist::serve<dist::Grpc>(resolver)) return 0;
  dist::ParameterServer<dist::Grpc> strategy{resolver};
  std::printf("%s\n", strategy.describe().c_str());
  nn::Network<Net, nn::OneDnn> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::Adam{}, nn::MeanSquaredError{}, nn::MeanOf{nn::MeanAbsoluteError{}}};
  const auto train = [](const dist::InputContext& worker) {  // runs in the processes of the workers
    auto all = table("table.csv") | data::cache();
    return all | data::take(4000) | to_example(statistics_of(all | data::take(4000))) | data::cache() |
           data::shuffle(4000, worker.input_pipeline_id()) | data::batch(32);
  };
  auto all = table("table.csv") | data::cache();
  auto validation = all | data::skip(4000) | to_example(statistics_of(all | data::take(4000))) | data::batch(64);
  model.fit(train, {.epochs = 10, .steps_per_epoch = 125, .validation = validation, .verbose = 2},
            nn::callbacks::EarlyStopping{{.patience = 4, .restore_best_weights = true}},
            nn::callbacks::ModelCheckpoint{"checkpoints/best", {.save_best_only = true}},
            nn::callbacks::ReduceLROnPlateau{{.factor = 0.5, .patience = 2}});
  const auto predictions = model.predict(validation, {.verbose = 0});
  std::printf("%s predictions\n", dist::to_string(predictions.shape()).c_str());
  model.save_weights("net.safetensors");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
