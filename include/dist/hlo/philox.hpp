#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <dist/hlo/traced.hpp>

namespace dist::hlo {

/// Philox4x32-10 on traced words, bit for bit like dist::philox: four random words per counter.
template <class Word>
[[nodiscard]] std::array<Word, 4> philox(std::array<Word, 4> counter, Word key_0, Word key_1) {
  static_assert(TracedArray<Word> && std::same_as<typename Word::Element, std::uint32_t>,
                "hlo::philox works on words of 32 bits: give it hlo::Traced<std::uint32_t, ...>");
  using Wide = typename Word::template With<std::uint64_t>;
  const Wide multiplier_0{0xD2511F53U}, multiplier_1{0xCD9E8D57U}, half{32U};
  const Word weyl_0{0x9E3779B9U}, weyl_1{0xBB67AE85U};
  for (int round = 0; round < 10; ++round) {
    const Wide product_0 = multiplier_0 * counter[0].template as<std::uint64_t>();
    const Wide product_1 = multiplier_1 * counter[2].template as<std::uint64_t>();
    const auto upper = [&](Wide product) { return (product >> half).template as<std::uint32_t>(); };
    counter = {upper(product_1) ^ counter[1] ^ key_0, product_1.template as<std::uint32_t>(),
               upper(product_0) ^ counter[3] ^ key_1, product_0.template as<std::uint32_t>()};
    key_0 += weyl_0;
    key_1 += weyl_1;
  }
  return counter;
}

/// The random numbers of a dist::RandomStream in a program, with the same bits as on the host.
class RandomStream {
 public:
  /// A traced word of the generator.
  using Number = Traced<std::uint64_t>;

  /// `stream` separates uses of the same seed.
  explicit RandomStream(Number seed, Number stream) : seed_(seed), stream_(stream) {}

  /// 64 random bits per index.
  template <std::size_t... Extents>
  [[nodiscard]] Traced<std::uint64_t, Extents...> bits(Traced<std::uint64_t, Extents...> index) const {
    using Wide = Traced<std::uint64_t, Extents...>;
    using Word = Traced<std::uint32_t, Extents...>;
    const auto lower = [](auto number) { return number.template as<std::uint32_t>(); };
    const auto upper = [&](auto number) { return lower(number >> decltype(number){32U}); };
    const std::array<Word, 4> words =
        philox<Word>({lower(index), upper(index), lower(stream_), upper(stream_)}, lower(seed_), upper(seed_));
    return (words[1].template as<std::uint64_t>() << Wide{32U}) | words[0].template as<std::uint64_t>();
  }

  /// Uniform numbers in [0, 1) with the full precision of `T`.
  template <std::floating_point T = float, std::size_t... Extents>
  [[nodiscard]] Traced<T, Extents...> uniform(Traced<std::uint64_t, Extents...> index) const {
    using Wide = Traced<std::uint64_t, Extents...>;
    constexpr bool is_single = sizeof(T) == 4;
    return (bits(index) >> Wide{is_single ? 40U : 11U}).template as<T>() *
           Traced<T, Extents...>{is_single ? T(0x1p-24) : T(0x1p-53)};
  }

 private:
  Number seed_;
  Number stream_;
};

}  // namespace dist::hlo
