#include <dist/train/has_model_files.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <dist/checkpoint/load_weights.hpp>

namespace {

struct Noted : dist::nn::detail::HasModelFiles<Noted> {
  std::vector<std::string> calls;
};

}  // namespace

/// Notes which function is called.
template <>
struct dist::nn::detail::ModelFiles<Noted> {
  static void save(Noted& model, const std::string& path) { model.calls.push_back("save " + path); }
  static void load(Noted& model, const std::string& path) { model.calls.push_back("load " + path); }
  static void save_weights(Noted& model, const std::string& path) { model.calls.push_back("save_weights " + path); }
  static std::vector<std::string> load_weights(Noted&, const std::string& path) { return {path}; }
  static std::vector<std::string> load_weights(Noted&, const std::string& path, const LoadWeightsOptions& options) {
    return {path, options.keep.at(0)};
  }
};

TEST_CASE("a model with files calls what is included for them, with itself and the path") {
  Noted model;
  model.save("a");
  model.load("b");
  model.save_weights("c");
  CHECK(model.calls == std::vector<std::string>{"save a", "load b", "save_weights c"});
  CHECK(model.load_weights("d") == std::vector<std::string>{"d"});
  CHECK(model.load_weights("e", {.keep = {"seed"}}) == std::vector<std::string>{"e", "seed"});
}
