// SPDX-License-Identifier: Apache-2.0
// Memory that must not be read, for builds with the address sanitizer; nothing in all others. Such
// a build ends at the first byte that is read of a piece of an arena that was reset, or of a slice
// that is printed after its owner was freed.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define STENTOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STENTOR_ASAN 1
#endif
#endif

#ifdef STENTOR_ASAN
#include <sanitizer/asan_interface.h>
#define MEMORY_POISON(ptr, size) __asan_poison_memory_region((ptr), (size))
#define MEMORY_UNPOISON(ptr, size) __asan_unpoison_memory_region((ptr), (size))
#else
#define MEMORY_POISON(ptr, size) ((void)(ptr), (void)(size))
#define MEMORY_UNPOISON(ptr, size) ((void)(ptr), (void)(size))
#endif
