#pragma once

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstdint>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/trace.hpp>

namespace dist {

/// Shows the work of strategies during the lifetime of this object as NVTX ranges in Nsight Systems and other
/// profilers:
///
///     dist::NvtxRanges ranges;
///
/// The ranges are in the domain "dist", with the names, threads and events of a TraceFile. The payload is the replica's
/// number. Without a profiler nothing is recorded. To use it together with a TraceFile, create that first, or enable it
/// by DIST_TRACE. Strategies must be created after this object and destroyed before it.
class NvtxRanges final : private SpanListener {
 public:
  /// Throws WrongStrategy if another NvtxRanges exists.
  NvtxRanges() {
    detail::trace_as_the_environment_asks();
    Trace* const active = detail::active_trace.load();
    trace_ = active == nullptr ? &without_events_ : active;
    if (!trace_->set_listener(this))
      throw WrongStrategy("A second NvtxRanges object was created", "the first one still exists",
                          "Create one for the whole program");
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
