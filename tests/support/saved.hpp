// A checkpoint in memory: the leaves of a walk by their keys.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>

namespace support {

class Saved {
 public:
  template <class S, dist::Trackable Tracked>
  Saved(S& strategy, Tracked& tracked) {
    dist::walk(tracked, [&](std::string_view key, auto& leaf) {
      if constexpr (requires { leaf.whole(strategy.scope()); })
        put(key, leaf.whole(strategy.scope()));
      else
        put(key, scalar(leaf));
    });
  }

  template <class S, dist::Trackable Tracked>
  void restore(S& strategy, Tracked& tracked) const {
    dist::walk(tracked, [&](std::string_view key, auto& leaf) {
      if constexpr (requires { leaf.whole(strategy.scope()); }) {
        const auto values = get<typename decltype(leaf.whole(strategy.scope()))::Element>(key);
        leaf.restore(strategy.scope(), values.view());
      } else {
        leaf = get<std::remove_reference_t<decltype(leaf)>>(key)[0];
      }
    });
  }

  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, entry] : entries_) keys.push_back(key);
    return keys;
  }
  template <class T>
  [[nodiscard]] dist::Tensor<T> get(std::string_view key) const {
    const auto found = entries_.find(std::string{key});
    if (found == entries_.end()) throw std::runtime_error("nothing was saved as " + std::string{key});
    dist::Tensor<T> values{found->second.shape};
    if (found->second.bytes.size() != values.size() * sizeof(T)) throw std::runtime_error("another type was saved");
    std::memcpy(values.data(), found->second.bytes.data(), found->second.bytes.size());
    return values;
  }

  [[nodiscard]] bool same(const Saved& other, const std::string& key) const {
    return entries_.at(key) == other.entries_.at(key);
  }
  friend bool operator==(const Saved&, const Saved&) = default;

 private:
  struct Entry {
    dist::Shape shape;
    std::vector<std::byte> bytes;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  template <class T>
  static dist::Tensor<T> scalar(T number) {
    dist::Tensor<T> one{dist::Shape{}};
    one[0] = number;
    return one;
  }
  template <class T>
  void put(std::string_view key, const dist::Tensor<T>& values) {
    Entry entry{values.shape(), std::vector<std::byte>(values.size() * sizeof(T))};
    std::memcpy(entry.bytes.data(), values.data(), entry.bytes.size());
    entries_.emplace(key, std::move(entry));
  }

  std::map<std::string, Entry> entries_;
};

}  // namespace support
