/// Batch normalisation in modules of libtorch, with the statistics of all replicas. Works with libtorch 1.13 and newer.
#pragma once

#include <dist/torch/parts.hpp>  // first: it includes what libtorch 1.13 needs before its other headers

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/batchnorm.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

/// The module of TorchSyncBatchNorm.
class TorchSyncBatchNormImpl : public torch::nn::NormImplBase<1, TorchSyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  /// Makes a module with the chosen options.
  explicit TorchSyncBatchNormImpl(const torch::nn::BatchNormOptions& chosen)
      : NormImplBase<1, TorchSyncBatchNormImpl, torch::nn::BatchNormOptions>(chosen) {}
  /// Makes a module with libtorch's default options for this number of channels.
  explicit TorchSyncBatchNormImpl(std::int64_t channels)
      : TorchSyncBatchNormImpl(torch::nn::BatchNormOptions{channels}) {}

  /// Normalises x [rows, channels, ...]. In training mode a collective call of the replicas. Throws InvalidArgument in
  /// training mode outside a step, and if the replicas together have a single value for each channel; and libtorch's
  /// errors.
  [[nodiscard]] torch::Tensor forward(const torch::Tensor& x) {
    _check_input_dim(x);
    if (!is_training() && running_mean.defined())
      return torch::nn::functional::detail::batch_norm(x, running_mean, running_var, weight, bias, false, 0.0,
                                                       options.eps());
    const torch::Tensor normalised = Pass::apply(x, this);
    if (!weight.defined()) return normalised;
    return normalised * along(weight, x) + along(bias, x);
  }

  /// Sets the function that adds arrays of the replicas in place, or none outside steps. TorchModule calls this.
  void attach(std::function<void(std::span<double>)> all_reduce) { all_reduce_ = std::move(all_reduce); }

 protected:
  /// Throws InvalidArgument for an input without axes [rows, channels], or with another number of channels.
  void _check_input_dim(const torch::Tensor& x) override {
    if (x.dim() < 2 || x.size(1) != options.num_features())
      throw InvalidArgument(concat("A TorchSyncBatchNorm of ", options.num_features(),
                                   " channels has an input of shape ", to_string(detail::TorchTensors::shape_of(x))),
                            "its input is [rows, channels] or [rows, channels, height, width]",
                            "Make it with the number of channels of the layer before it");
  }

 private:
  /// The normalisation without weight and bias.
  struct Pass : torch::autograd::Function<Pass> {
    static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                                 TorchSyncBatchNormImpl* norm) {
      const torch::Tensor shift =
          norm->running_mean.defined() ? norm->running_mean.clone() : torch::zeros({norm->options.num_features()});
      const torch::Tensor shifted = x - along(shift, x);
      const auto [means, squares, count] = norm->means_of_replicas(shifted, shifted * shifted);
      if (count < 2)
        throw InvalidArgument("A TorchSyncBatchNorm cannot normalise a single value",
                              concat("all replicas together have ", count, " value for each channel"),
                              "Give a step more rows, or set the module to evaluation mode");
      const torch::Tensor variances = (squares - means * means).clamp_min(0);
      const torch::Tensor factors = (variances + norm->options.eps()).rsqrt().to(torch::kFloat32);
      norm->update_statistics(shift + means, variances * (count / (count - 1)));
      const torch::Tensor y = (shifted - along(means.to(torch::kFloat32), x)) * along(factors, x);
      context->save_for_backward({y, factors});
      context->saved_data["norm"] = reinterpret_cast<std::int64_t>(norm);
      return y;
    }
    static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::tensor_list slopes) {
      const auto saved = context->get_saved_variables();
      const torch::Tensor& y = saved[0];
      const torch::Tensor& dy = slopes[0];
      auto* const norm = reinterpret_cast<TorchSyncBatchNormImpl*>(context->saved_data["norm"].toInt());
      const auto [means, products, count] = norm->means_of_replicas(dy, dy * y);
      const auto of_channels = [&](const torch::Tensor& values) { return along(values.to(torch::kFloat32), y); };
      return {along(saved[1], y) * (dy - of_channels(means) - y * of_channels(products)), {}};
    }
  };

  /// Returns numbers of channels as [1, channels, 1, ...].
  [[nodiscard]] static torch::Tensor along(const torch::Tensor& values, const torch::Tensor& x) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
    sizes[1] = -1;
    return values.view(sizes);
  }

  struct Means {
    torch::Tensor first, second;  ///< float64, one number for each channel
    double count;                 ///< values of a channel on all replicas
  };
  /// Returns the means of two tensors of one shape over the values of all replicas. A collective call.
  [[nodiscard]] Means means_of_replicas(const torch::Tensor& first, const torch::Tensor& second) const {
    if (!all_reduce_)
      throw InvalidArgument("A TorchSyncBatchNorm was called in training mode outside a step",
                            "no replica is there to exchange statistics with",
                            "Call net.on(replica) or net.forward(replica, x) in each step, and eval() outside steps");
    std::vector<std::int64_t> others;
    for (std::int64_t axis = 0; axis < first.dim(); ++axis)
      if (axis != 1) others.push_back(axis);
    const std::int64_t channels = first.size(1);
    const double count = static_cast<double>(first.numel() / channels);
    const torch::Tensor sums =
        torch::cat({first.sum(others, false, torch::kFloat64), second.sum(others, false, torch::kFloat64),
                    torch::full({1}, count, torch::kFloat64)});
    all_reduce_({sums.data_ptr<double>(), static_cast<std::size_t>(sums.numel())});
    const double all = sums[2 * channels].item<double>();
    return {sums.slice(0, 0, channels) / all, sums.slice(0, channels, 2 * channels) / all, all};
  }

  void update_statistics(const torch::Tensor& means, const torch::Tensor& variances) {
    if (!running_mean.defined()) return;
    num_batches_tracked += 1;
    const double momentum = options.momentum() ? *options.momentum() : 1 / num_batches_tracked.item<double>();
    running_mean.lerp_(means.to(torch::kFloat32), momentum);
    running_var.lerp_(variances.to(torch::kFloat32), momentum);
  }

  std::function<void(std::span<double>)> all_reduce_;
};

/// Batch normalisation in a module of libtorch, with the mean and the variance of all replicas' rows, as
/// torch.nn.SyncBatchNorm of PyTorch under DistributedDataParallel. It takes the place of torch::nn::BatchNorm1d,
/// BatchNorm2d and BatchNorm3d in a module that torch_module makes, and has their parameters and buffers, so files of
/// these load. In evaluation mode it uses the moving statistics, without communication. Made from a number of channels
/// or torch::nn::BatchNormOptions. In a step, all replicas call forward equally often.
TORCH_MODULE(TorchSyncBatchNorm);

}  // namespace dist
