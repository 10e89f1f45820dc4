#pragma once

#include <pthread.h>

#include <new>
#include <type_traits>

namespace xgrad::detail {

/// Constructs `object` anew in a child of fork(), where a thread that held a lock of it or changed
/// it does not exist.  Use it at namespace scope beside the object, because the system does not
/// call a handler that is registered while a fork() is under way.
template <auto& object>
struct RenewedInChild {
  RenewedInChild() {
    pthread_atfork(nullptr, nullptr,
                   [] { new (&object) std::remove_reference_t<decltype(object)>(); });
  }
};

}  // namespace xgrad::detail
