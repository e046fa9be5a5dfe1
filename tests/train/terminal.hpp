// A console with a manual clock, which stores its messages.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dist/train/progress_bar.hpp>

struct Terminal {
  std::shared_ptr<std::vector<std::string>> messages = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<double> now = std::make_shared<double>(100.0);

  [[nodiscard]] dist::nn::Console console(bool terminal = true) const {
    return {.write = [kept = messages](std::string_view message) { kept->emplace_back(message); },
            .terminal = terminal,
            .clock = [time = now] { return *time; }};
  }
};
