#pragma once
// Objects of each thread that can be used as long as the thread runs.

namespace xgrad::detail {

/// An object that ends with its thread.
class OfThread {
 public:
  OfThread();  ///< from now on it belongs to this thread
  virtual ~OfThread() = default;

 private:
  friend struct EndOfThread;
  OfThread* next_;  // the one that was made before
};

/// This thread's T, one for each Tag, made at its first use.  A thread_local object would be
/// destroyed before some code that may still need it: destructors of other thread_local objects and
/// of objects with static storage, and functions of atexit().  This one is destroyed after the
/// thread's thread_local objects, and made again if one is needed later; the main thread's is never
/// destroyed, but stays reachable.
template <class T, class Tag = T>
T& per_thread() {
  static thread_local constinit T* mine = nullptr;
  struct Held final : OfThread {
    T object{};
    ~Held() override { mine = nullptr; }
  };
  if (mine == nullptr) [[unlikely]]
    mine = &(new Held)->object;
  return *mine;
}

}  // namespace xgrad::detail
