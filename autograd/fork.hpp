#pragma once

#include <pthread.h>

#include <new>
#include <type_traits>

namespace xgrad::detail {

/// Makes `object` anew in a child of fork(): a thread that held or changed it is not there to let
/// go of it.  At namespace scope beside the object, since the system calls no handler that is
/// registered while a fork() is under way.
template <auto& object>
struct RenewedInChild {
  RenewedInChild() {
    pthread_atfork(nullptr, nullptr,
                   [] { new (&object) std::remove_reference_t<decltype(object)>(); });
  }
};

}  // namespace xgrad::detail
