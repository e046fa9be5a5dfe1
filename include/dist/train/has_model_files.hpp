#pragma once

#include <string>
#include <vector>

#include <dist/core/type_traits.hpp>

namespace dist {
struct LoadWeightsOptions;  // of dist/checkpoint/load_weights.hpp
}

namespace dist::nn::detail {

/// The files of a model. What it does stands in model_files.hpp, as it needs packages; without it, a sentence.
template <class Model>
struct ModelFiles {
  static_assert(dist::detail::always_false<Model>,
                "save, load, save_weights and load_weights of a model are there where dist/train/model_files.hpp is "
                "included: add #include <dist/train/model_files.hpp>");
  static void save(auto&&...) {}
  static void load(auto&&...) {}
  static void save_weights(auto&&...) {}
  static std::vector<std::string> load_weights(auto&&...) { return {}; }
};

/// Files of the model `M`, as model_files.hpp says, which a program includes that calls one of these. All are collective calls
/// of the processes.
template <class M>
class HasModelFiles {
 public:
  void save(const std::string& path) { ModelFiles<M>::save(model(), path); }
  void load(const std::string& path) { ModelFiles<M>::load(model(), path); }
  void save_weights(const std::string& path) { ModelFiles<M>::save_weights(model(), path); }
  std::vector<std::string> load_weights(const std::string& path) { return ModelFiles<M>::load_weights(model(), path); }
  std::vector<std::string> load_weights(const std::string& path, const LoadWeightsOptions& options) {
    return ModelFiles<M>::load_weights(model(), path, options);
  }

 private:
  [[nodiscard]] M& model() noexcept { return static_cast<M&>(*this); }
};

}  // namespace dist::nn::detail
