// The half of an operation that an entry computes, and the memory of its sums between the halves.
#pragma once

namespace wl {

// A member of a group visits the elements, waits for the total of the group, and finishes.
enum class Half : unsigned char { WHOLE, VISITING, FINISHING };

// One real number a word: word w of column c is at numbers[w * columns + c].
struct Slots {
  Half half = Half::WHOLE;
  void* numbers = nullptr;
};

} // namespace wl
