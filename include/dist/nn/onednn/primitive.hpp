#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/contract.hpp>
#include <dist/nn/onednn/api.hpp>

namespace dist::nn::onednn {

/// The contents of State.
class Runtime {
 public:
  [[nodiscard]] const dnnl::engine& engine() const noexcept { return engine_; }
  [[nodiscard]] const dnnl::stream& stream() const noexcept { return stream_; }

  [[nodiscard]] void* scratchpad() noexcept { return scratchpad_.data(); }
  /// Reserves more than `bytes`: oneDNN 2.6 writes a few vectors past the scratchpad, in the kernel gradient of a
  /// strided convolution with a window of 1 and fewer channels than a vector has elements.
  void reserve_scratchpad(std::size_t bytes) {
    constexpr std::size_t margin = 4096;
    if (bytes + margin > scratchpad_.size()) scratchpad_ = AlignedBuffer<std::byte>(bytes + margin);
  }

  /// A buffer for one operation's data in a primitive's layout, which stays in the caches because all layers share
  /// it.
  [[nodiscard]] void* copy() noexcept { return copy_.data(); }
  void reserve_copy(std::size_t bytes) {
    if (bytes > copy_.size()) copy_ = AlignedBuffer<std::byte>(bytes);
  }

 private:
  dnnl::engine engine_ = translated({"the CPU engine", [] { return std::string("engine 0"); }}, [] {
    return dnnl::engine{dnnl::engine::kind::cpu, 0};
  });
  dnnl::stream stream_ =
      translated({"the CPU stream", [] { return std::string("engine 0"); }}, [this] { return dnnl::stream{engine_}; });
  AlignedBuffer<std::byte> scratchpad_;
  AlignedBuffer<std::byte> copy_;
};

/// A compiled primitive with arguments, which runs repeatedly on the caller's memory without allocations.
class Primitive {
 public:
  struct Argument {
    int id;
    dnnl::memory::desc descriptor;
  };

  /// Leaves out an argument with a zero descriptor, such as the bias of a layer without one, which must be the last.
  /// Throws dnnl::error if oneDNN cannot create the primitive.
  Primitive(const Label& label, Runtime& runtime, const dnnl::primitive_desc_base& descriptor,
            std::initializer_list<Argument> arguments)
      : label_(label), primitive_(descriptor.get()) {
    const auto scratchpad = descriptor.scratchpad_desc();
    runtime.reserve_scratchpad(scratchpad.get_size());
    add(runtime, {DNNL_ARG_SCRATCHPAD, scratchpad});
    for (const Argument& argument : arguments)
      if (!argument.descriptor.is_zero()) add(runtime, argument);
  }

  /// Runs on `data`, one pointer per argument in the constructor's order; writes to the outputs. Ignores the pointer of
  /// an argument that was left out. Throws OneDnnError.
  void execute(Runtime& runtime, std::initializer_list<const void*> data) {
    DIST_EXPECT(data.size() + 1 >= count_);
    set(0, runtime.scratchpad());
    for (std::size_t index = 1; index < count_; ++index) set(index, data.begin()[index - 1]);
    check(
        dnnl_primitive_execute(primitive_.get(), runtime.stream().get(), static_cast<int>(count_), execution_.data()));
  }

 private:
  static constexpr std::size_t most_arguments = 6;

  void add(Runtime& runtime, const Argument& argument) {
    DIST_EXPECT(count_ < most_arguments);
    memory_[count_] = dnnl::memory{argument.descriptor, runtime.engine(), DNNL_MEMORY_NONE};
    execution_[count_] = {argument.id, memory_[count_].get()};
    ++count_;
  }

  /// oneDNN's interface takes mutable pointers even to inputs.
  void set(std::size_t index, const void* pointer) {
    if (data_[index] == pointer) return;
    translated(label_, [&] { memory_[index].set_data_handle(const_cast<void*>(pointer)); });
    data_[index] = pointer;
  }

  void check(dnnl_status_t status) const {
    if (status != dnnl_success) throw OneDnnError(label_.primitive, label_.geometry(), status, "could not execute it");
  }

  Label label_;
  dnnl::primitive primitive_;
  std::array<dnnl::memory, most_arguments> memory_;
  std::array<dnnl_exec_arg_t, most_arguments> execution_{};
  std::array<const void*, most_arguments> data_{};
  std::size_t count_ = 0;
};

}  // namespace dist::nn::onednn
