#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layout.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/sequential.hpp>

namespace dist::nn {

namespace detail {

/// Writes the name of a block's tensor, "3/dense_1/kernel", to `to` unless null. Returns its length.
constexpr std::size_t write_name(std::size_t block, const Parameter& tensor, char* to) {
  std::size_t length = 0;
  const auto add = [&](char character) {
    if (to != nullptr) to[length] = character;
    ++length;
  };
  const auto add_number = [&](std::size_t number) {
    std::size_t unit = 1;
    while (number / unit >= 10) unit *= 10;
    for (; unit > 0; unit /= 10) add(static_cast<char>('0' + number / unit % 10));
  };
  add_number(block);
  add('/');
  for (const char character : tensor.layer) add(character);
  if (tensor.ordinal > 0) {
    add('_');
    add_number(tensor.ordinal);
  }
  add('/');
  for (const char character : tensor.kind) add(character);
  return length;
}

/// The specs of the parameters or of the state of `Count` blocks.
template <class Kind, class Spec, class Block, std::size_t Count>
struct RepeatedSpecs {
 private:
  static constexpr auto& tensors = Layout<Kind, typename Block::Bound>::tensors;

  static constexpr std::size_t text_size = [] {
    std::size_t size = 0;
    for (std::size_t block = 0; block < Count; ++block)
      for (const Parameter& tensor : tensors) size += write_name(block, tensor, nullptr);
    return size;
  }();
  /// The names of all tensors, without separators.
  static constexpr std::array<char, text_size + 1> text = [] {
    std::array<char, text_size + 1> all{};
    [[maybe_unused]] char* next = all.data();
    for (std::size_t block = 0; block < Count; ++block)
      for (const Parameter& tensor : tensors) next += write_name(block, tensor, next);
    return all;
  }();

 public:
  static constexpr std::array<Spec, Count * tensors.size()> specs = [] {
    std::array<Spec, Count * tensors.size()> all{};
    [[maybe_unused]] const auto& of_block = specs_of<Kind, Spec, typename AllLeaves<typename Block::Bound>::Type>;
    [[maybe_unused]] const char* name = text.data();
    for (std::size_t block = 0; block < Count; ++block)
      for (std::size_t which = 0; which < tensors.size(); ++which) {
        Spec& spec = all[block * tensors.size() + which];
        spec = of_block[which];
        spec.name = {name, write_name(block, tensors[which], nullptr)};
        name += spec.name.size();
      }
    return all;
  }();
};

/// The Operation of Repeat: a Chain for each block. All use the same memory for gradients between their layers.
template <class Of, class Backend, class T>
class RepeatOperation {
  using Block = typename Of::Block;
  using State = typename Backend::State;
  using Where = typename Backend::Device::Space;
  using OnElements = dist::detail::FunctionRef<void(IndexRange)>;
  template <class Element>
  using View = ViewOn<Backend, Element>;
  template <class Element>
  using Views = ParameterViewsOn<Backend, Element, Block::parameters.size() == 0 ? 0 : 1>;

 public:
  static constexpr bool skips_parameter_gradients = true;

  void forward(State& state, View<const T> x, const Views<const T>& parameters, View<T> y, OnElements before_use) {
    forward(NoReplica{}, state, x, parameters, y, before_use);
  }
  template <class Call>
  void forward(const Call& call, State& state, View<const T> x, const Views<const T>& parameters, View<T> y,
               OnElements before_use) {
    const auto queue = queue_of<Backend>(state);
    for (std::size_t block = 0; block < Of::blocks; ++block) {
      auto& chain = with_scratch(block);
      x = chain.forward(queue, state, of_block(parameters, block), x, pass_of(call, block), in_block(block, before_use))
              .values;
    }
    queue.copy(x.elements(), y.elements());
  }

  template <bool InputGradient, bool ParameterGradients>
  void backward(State& state, View<const T> x, const Views<const T>& parameters, View<const T> y, View<T> dy,
                const Views<T>& gradients, View<T> dx, OnElements when_ready) {
    backward<InputGradient, ParameterGradients>(NoReplica{}, state, x, parameters, y, dy, gradients, dx, when_ready);
  }
  template <bool InputGradient, bool ParameterGradients, class Replica>
  void backward(const Replica& replica, State& state, View<const T>, const Views<const T>& parameters, View<const T>,
                View<T> dy, const Views<T>& gradients, View<T> dx, OnElements when_ready) {
    const auto queue = queue_of<Backend>(state);
    View<const T> gradient = dy;
    for (std::size_t block = Of::blocks; block-- > 0;) {
      auto& chain = with_scratch(block);
      if (const View<T> to = chain.output_gradient(); gradient.data() != to.data())
        queue.copy(gradient.elements(), to.elements());
      const auto run = [&]<bool Input>(std::bool_constant<Input>) {
        chain.template backward<Input, ParameterGradients>(queue, state, of_block(parameters, block),
                                                           of_block(gradients, block), replica,
                                                           in_block(block, when_ready));
      };
      if (block > 0) {
        run(std::true_type{});
      } else {
        run(std::bool_constant<InputGradient>{});
      }
      if (InputGradient || block > 0) gradient = chain.input_gradient();
    }
    if constexpr (InputGradient) queue.copy(gradient.elements(), dx.elements());
  }

  void swap_scratch(RepeatOperation& other) { blocks_[has_scratch_].swap_scratch(other.blocks_[other.has_scratch_]); }

 private:
  /// Returns a block after it takes the scratch memory from the last one that was used.
  [[nodiscard]] auto& with_scratch(std::size_t block) {
    if (block != has_scratch_) blocks_[block].swap_scratch(blocks_[has_scratch_]);
    has_scratch_ = block;
    return blocks_[block];
  }
  /// Returns the first element of a block.
  template <class Element>
  [[nodiscard]] static Element* of_block([[maybe_unused]] const Views<Element>& all,
                                         [[maybe_unused]] std::size_t block) {
    if constexpr (Block::parameters.size() == 0) {
      return nullptr;
    } else {
      return all[0].data() + block * Block::padded_count;
    }
  }
  /// Returns the argument of a block's forward.
  template <class Call>
  [[nodiscard]] static auto pass_of([[maybe_unused]] const Call& call, [[maybe_unused]] std::size_t block) {
    if constexpr (!Block::uses_replica) {
      return NoReplica{};
    } else if constexpr (Block::state.size() == 0) {
      return call.pass();
    } else {
      return call.pass(call.state[0].data() + block * Block::padded_state_count);
    }
  }
  /// Returns a function for ranges of the elements of one block.
  [[nodiscard]] static auto in_block(std::size_t block, OnElements call) {
    return [call, begin = block * Block::padded_count](IndexRange elements) {
      call({begin + elements.begin, begin + elements.end});
    };
  }

  std::array<Chain<Block, Backend, T>, Of::blocks> blocks_;
  std::size_t has_scratch_ = 0;  // a block's number
};

}  // namespace detail

/// `Count` blocks in sequence, each a layer, a Sequential or a block with `Layers<In>`, whose output has the shape of
/// its input. It computes the bits of the blocks written one by one, and starts from the same parameters. If the block
/// ends in an activation, gradients may differ by rounding, because some back ends compute the activation's gradient in
/// the product of the next layer. The program contains the block once, whatever the number of blocks. The blocks share
/// the memory of gradients between their layers.
///
/// A parameter's name has the number of its block: "repeat/3/dense_1/kernel", or "blocks/3/dense_1/kernel" with
/// Named<"blocks", …>. Layers of one name are numbered in each block.
template <std::size_t Count, class BlockType>
struct Repeat {
  static_assert(Count > 0,
                "nn::Repeat needs at least one block: leave it out of the network, or give a number of blocks");

  /// The bound layer.
  template <class In>
  struct On {
    using Layer = Repeat;
    using Block = detail::NetworkOn<In, BlockType>;
    static constexpr std::size_t blocks = Count;
    static_assert(std::is_same_v<typename Block::OutputShape, In>,
                  "nn::Repeat needs a block whose output has the shape of its input, because it is the next block's "
                  "input: change the block's last layer, or write the blocks one by one");
    using Output = In;
    static constexpr std::string_view name = "repeat";
    static constexpr auto& parameters = detail::RepeatedSpecs<detail::Learned, ParameterSpec, Block, Count>::specs;
    static constexpr auto& state = detail::RepeatedSpecs<detail::Kept, StateSpec, Block, Count>::specs;
    static constexpr bool is_view = false;
    static constexpr bool uses_replica = Block::uses_replica;
    static constexpr bool uses_global_rows = Block::uses_global_rows;
    static constexpr bool takes_ids = Block::takes_ids;

    template <class Backend, class T>
    using Operation = detail::RepeatOperation<On, Backend, T>;
  };
};

}  // namespace dist::nn
