#pragma once
// The sanitizer of this build, in one form for GCC and Clang.

#if defined(__SANITIZE_ADDRESS__)
#define XGRAD_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define XGRAD_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define XGRAD_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define XGRAD_THREAD_SANITIZER 1
#endif
#endif
#if !defined(XGRAD_ADDRESS_SANITIZER)
#define XGRAD_ADDRESS_SANITIZER 0
#endif
#if !defined(XGRAD_THREAD_SANITIZER)
#define XGRAD_THREAD_SANITIZER 0
#endif
#define XGRAD_SANITIZER (XGRAD_ADDRESS_SANITIZER || XGRAD_THREAD_SANITIZER)
