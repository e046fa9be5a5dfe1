// Functions that may pause and continue: a Fiber, or a function in a separate thread.
#pragma once

#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

namespace support {

class Strand {
 public:
  Strand() = default;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;
  virtual ~Strand() = default;

  /// Runs it until it pauses or ends.
  virtual void resume() = 0;
  /// Returns to the caller of `resume`. Call it on the strand.
  virtual void pause() = 0;
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

 protected:
  bool ended_ = false;
};

/// Runs `body`, which must not throw, in a separate thread from the first `resume` on, while the caller waits: only one
/// of them runs at a time, and each has separate thread_local variables. It must run to completion.
class ThreadStrand final : public Strand {
 public:
  explicit ThreadStrand(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          goes_on_.acquire();
          body();
          ended_ = true;
          pauses_.release();
        }) {}
  ~ThreadStrand() override { thread_.join(); }

  void resume() override {
    goes_on_.release();
    pauses_.acquire();
  }
  void pause() override {
    pauses_.release();
    goes_on_.acquire();
  }

 private:
  std::binary_semaphore goes_on_{0};
  std::binary_semaphore pauses_{0};
  std::thread thread_;
};

}  // namespace support
