#pragma once

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstdint>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/trace.hpp>

namespace dist {

/// What strategies do from here to the end of this object's life, as ranges of NVTX, which Nsight Systems and other
/// profilers show beside the work of GPUs:
///
///     dist::NvtxRanges ranges;
///
/// The ranges are in the domain "dist", in the threads that they are of, with the names that a TraceFile has: each
/// replica's part of a run, each collective of a replica, the input. The payload is the number of the replica. Without a
/// profiler nothing of it is kept. A TraceFile that is to record the same is made before, or asked for by DIST_TRACE.
/// Strategies that it is to see are made after it and end before it.
class NvtxRanges final : private SpanListener {
 public:
  /// Throws WrongStrategy while other NvtxRanges live.
  NvtxRanges() {
    detail::trace_as_the_environment_asks();
    Trace* const active = detail::active_trace.load();
    trace_ = active == nullptr ? &without_events_ : active;
    if (!trace_->set_listener(this))
      throw WrongStrategy("Ranges of NVTX were asked for a second time", "NvtxRanges live already",
                          "Make them once, for the whole program");
    domain_ = nvtxDomainCreateA("dist");
    if (active == nullptr) detail::active_trace.store(trace_);
  }
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;
  ~NvtxRanges() {
    if (trace_ == &without_events_) detail::active_trace.store(nullptr);
    static_cast<void>(trace_->set_listener(nullptr));
    nvtxDomainDestroy(domain_);
  }

 private:
  void begin(std::string_view name, std::int64_t number) noexcept override {
    std::array<char, sizeof(Trace::Event::label)> text{};
    name.copy(text.data(), text.size() - 1);
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.data();
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = number;
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void end() noexcept override { nvtxDomainRangePop(domain_); }

  Trace without_events_{0};
  Trace* trace_ = nullptr;
  nvtxDomainHandle_t domain_ = nullptr;
};

}  // namespace dist
