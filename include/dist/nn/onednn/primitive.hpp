#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include <dist/core/contract.hpp>
#include <dist/nn/onednn/api.hpp>
#include <dist/nn/onednn/state.hpp>

namespace dist::nn::onednn {

/// A compiled primitive and its arguments, executed again and again on the caller's memory. Executing
/// allocates nothing here.
class Primitive {
 public:
  struct Argument {
    int id;
    dnnl::memory::desc descriptor;
  };

  /// `primitive` is what `descriptor` describes. Throws dnnl::error.
  template <class PrimitiveDescriptor>
  Primitive(const Label& label, State& state, const PrimitiveDescriptor& descriptor, dnnl::primitive primitive,
            std::initializer_list<Argument> arguments)
      : label_(label), primitive_(std::move(primitive)) {
    const auto scratchpad = descriptor.scratchpad_desc();
    state.reserve_scratchpad(scratchpad.get_size());
    add(state, {DNNL_ARG_SCRATCHPAD, scratchpad});
    for (const Argument& argument : arguments) add(state, argument);
  }

  /// Runs on `data`, one pointer per argument in the order given to the constructor. The primitive writes to
  /// those that are its outputs. Throws OneDnnError.
  void execute(State& state, std::initializer_list<const void*> data) {
    DIST_EXPECT(data.size() + 1 == count_);
    set(0, state.scratchpad());
    std::size_t index = 1;
    for (const void* pointer : data) set(index++, pointer);
    check(dnnl_primitive_execute(primitive_.get(), state.stream().get(), static_cast<int>(count_), execution_.data()));
  }

 private:
  static constexpr std::size_t most_arguments = 6;

  void add(State& state, const Argument& argument) {
    DIST_EXPECT(count_ < most_arguments);
    memory_[count_] = dnnl::memory{argument.descriptor, state.engine(), DNNL_MEMORY_NONE};
    execution_[count_] = {argument.id, memory_[count_].get()};
    ++count_;
  }

  /// oneDNN takes pointers to inputs as mutable ones too.
  void set(std::size_t index, const void* pointer) {
    if (data_[index] == pointer) return;
    try {
      memory_[index].set_data_handle(const_cast<void*>(pointer));
    } catch (const dnnl::error& error) {
      throw OneDnnError(label_.primitive, label_.geometry(), error.status, error.message);
    }
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
