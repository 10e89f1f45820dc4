#include "helpers/faults.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace {

// The calls that must fail on this thread, and those that did.
struct Plan {
  bool active = false, forever = false;
  std::size_t left = 0;
  const char* first = nullptr;
};
thread_local Plan plan;

// Whether this call must fail.
bool fails(const char* name, int error) {
  if (!plan.active || (plan.left > 0 && plan.left-- > 0))
    return false;
  if (plan.first == nullptr)
    plan.first = name;
  plan.active = plan.forever;
  errno = error;
  return true;
}

template <class F>
F* next_definition(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

FailingCall::FailingCall(std::size_t k, bool ever_after) {
  plan = {.active = true, .forever = ever_after, .left = k};
}
FailingCall::~FailingCall() { plan.active = false; }
std::string FailingCall::failed() { return plan.first == nullptr ? "" : plan.first; }

#ifndef __ELF__
bool FailingCall::possible() { return false; }
#else
bool FailingCall::possible() { return true; }

// The program's own definitions take precedence over the C library's.
extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    __builtin_va_list arguments;
    __builtin_va_start(arguments, flags);
    mode = __builtin_va_arg(arguments, mode_t);
    __builtin_va_end(arguments);
  }
  static auto* const real = next_definition<int(const char*, int, ...)>("open");
  return fails("open", EACCES) ? -1 : real(path, flags, mode);
}
ssize_t write(int descriptor, const void* data, size_t bytes) {
  static auto* const real = next_definition<ssize_t(int, const void*, size_t)>("write");
  return fails("write", ENOSPC) ? -1 : real(descriptor, data, bytes);
}
ssize_t pread(int descriptor, void* data, size_t bytes, off_t offset) {
  static auto* const real = next_definition<ssize_t(int, void*, size_t, off_t)>("pread");
  return fails("pread", EIO) ? -1 : real(descriptor, data, bytes, offset);
}
int fsync(int descriptor) {
  static auto* const real = next_definition<int(int)>("fsync");
  return fails("fsync", EIO) ? -1 : real(descriptor);
}
void* dlopen(const char* path, int flags) noexcept {
  static auto* const real = next_definition<void*(const char*, int)>("dlopen");
  return fails("dlopen", ENOENT) ? nullptr : real(path, flags);
}
int rename(const char* from, const char* to) noexcept {
  static auto* const real = next_definition<int(const char*, const char*)>("rename");
  return fails("rename", EROFS) ? -1 : real(from, to);
}

}  // extern "C"
#endif
