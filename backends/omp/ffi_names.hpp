// Numbers by which compiled programs name objects of this process.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>

namespace wl {

// Objects have their numbers until their owners are freed. Numbers are random: a program that
// another process compiled finds no object instead of a wrong one.
template <class T>
class FfiNames {
public:
  std::int64_t name(const std::shared_ptr<T>& object) {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (auto it = objects_.begin(); it != objects_.end();)
      it = it->second.expired() ? objects_.erase(it) : std::next(it);
    std::int64_t number = 0;
    while (number == 0 || objects_.count(number) != 0)
      number = static_cast<std::int64_t>(random_() >> 1);
    objects_[number] = object;
    return number;
  }

  // The object of a number; nullptr if it is gone, or was named in another process.
  std::shared_ptr<T> find(std::int64_t number) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : found->second.lock();
  }

private:
  mutable std::mutex mutex_;
  std::mt19937_64 random_{std::random_device{}()};
  std::unordered_map<std::int64_t, std::weak_ptr<T>> objects_;
};

} // namespace wl
