// Files of a network: checkpoints written in the background, weights in exchange formats, and an ONNX model.
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>
#include <dist/dist.hpp>
#include <dist/io/safetensors_writer.hpp>
#include <dist/nn.hpp>
#include <dist/onnx/export_onnx.hpp>

#include "backend.hpp"
#include "check.hpp"

namespace {

namespace nn = dist::nn;

/// Writes the file of `safetensors.torch.save_file(module.state_dict(), path)` for a module with two Linear layers.
void write_as_pytorch(const std::string& path) {
  using enum dist::io::ElementType;
  dist::io::SafetensorsWriter file{
      path, {{"fc1.weight", f32, {8, 4}}, {"fc1.bias", f32, {8}}, {"fc2.weight", f32, {3, 8}}, {"fc2.bias", f32, {3}}}};
  for (const std::size_t count : {32U, 8U, 24U, 3U}) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    file.append(std::span<const float>{values});
  }
  file.commit();
}

}  // namespace

int main() {
  const std::string folder = std::filesystem::temp_directory_path() / "dist_example_30";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);

  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<8, nn::Relu>, nn::Dense<3>>;
  nn::Network<Net, Backend> net{strategy, /*seed=*/1};

  // [background]
  dist::Checkpoint checkpoint{strategy};
  checkpoint.add("network", net);
  dist::CheckpointManager manager{checkpoint, folder + "/checkpoints", {.max_to_keep = 3}};
  const auto saving = manager.start_save();  // copies all parts; a thread writes the copies

  net.assign_parameter(strategy.scope(), "dense/bias", 0.5F);  // training continues and changes the parts

  saving.wait();  // returns when the checkpoint is complete; throws if it failed
  const auto path = manager.restore_latest();
  // [/background]
  std::printf("restored %s\n", path ? path->c_str() : "nothing");
  check(path && net.parameter(strategy.scope(), "dense/bias")[0] == 0,
        "the checkpoint has the values at the call of start_save");

  // [save]
  dist::save_weights(strategy, net, folder + "/net.safetensors");  // or net.npz, for NumPy
  nn::export_onnx(strategy, net, folder + "/net.onnx");
  // [/save]
  check(std::filesystem::exists(folder + "/net.onnx"), "the ONNX file exists");

  const std::string state_dict = folder + "/state_dict.safetensors";
  write_as_pytorch(state_dict);
  // [load]
  dist::load_weights(strategy, net, state_dict,
                     {.names = {{"dense/kernel", "fc1.weight", {1, 0}},  // PyTorch's Linear stores [out, in]
                                {"dense/bias", "fc1.bias"},
                                {"dense_1/kernel", "fc2.weight", {1, 0}},
                                {"dense_1/bias", "fc2.bias"}}});
  // [/load]
  const dist::Tensor<float> kernel = net.parameter(strategy.scope(), "dense/kernel");
  check(kernel.shape() == dist::Shape{4, 8} && kernel[1] == 4, "the kernel is transposed");

  dist::load_weights(strategy, net, folder + "/net.safetensors");
  check(net.parameter(strategy.scope(), "dense/bias")[1] == 0, "the saved weights are restored");
  std::filesystem::remove_all(folder);
}
