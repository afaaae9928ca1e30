// Memory for data that kernels read repeatedly; large arrays are on huge pages.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#elif defined(_WIN32)
#include <malloc.h>
#endif

#include "unified/types.hpp"

namespace wl {

// Streams from huge pages are 1.1 to 1.6 times as fast; malloc does not provide them.
constexpr std::size_t kHugePage = std::size_t(1) << 21;

// An array without initial values.
template <class T>
class Huge {
public:
  Huge() = default;
  explicit Huge(std::size_t count) : size_(count) {
    const std::size_t bytes = count * sizeof(T);
    const std::size_t page = bytes >= 2 * kHugePage ? kHugePage : 64;
    const std::size_t rounded = (bytes + page - 1) / page * page;
#if defined(_WIN32)
    void* const memory = _aligned_malloc(rounded > 0 ? rounded : page, page);
#else
    void* const memory = std::aligned_alloc(page, rounded > 0 ? rounded : page);
#endif
    if (memory == nullptr)
      throw std::bad_alloc();
#if defined(__linux__)
    if (page == kHugePage)
      madvise(memory, rounded, MADV_HUGEPAGE); // only advice: a failure costs speed alone
#endif
    data_.reset(static_cast<T*>(memory));
  }

  using value_type = T;
  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

private:
  struct Free {
    void operator()(T* memory) const {
#if defined(_WIN32)
      _aligned_free(memory);
#else
      std::free(memory);
#endif
    }
  };
  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

// The bytes of the elements of a vector.
template <class Vector>
long long bytes_of(const Vector& v) {
  return static_cast<long long>(v.size() * sizeof(typename Vector::value_type));
}

} // namespace wl
