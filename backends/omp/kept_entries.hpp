// Entries of adjacent rows that are selected by their values: their number, and copies of them.
//
// Entries are tested in the order of memory, 64 at a time, across rows: with a loop for each row,
// processors would mispredict the end of the loop once every few entries.
#pragma once

#include <cstdint>
#include <cstring>

#include "unified/types.hpp"

namespace wl {

constexpr i64 kEntriesOfWord = 64;

// The number of selected entries of a word up to which they are visited one by one; with more of
// them a copy without branches is faster.
constexpr int kFewOfWord = 16;

// Bit i says whether keeps(first + i) is true, for `count` entries from `first` on.
template <class Keeps>
std::uint64_t kept_word(i64 first, i64 count, const Keeps& keeps) {
  alignas(64) u8 flags[kEntriesOfWord];
  if (count == kEntriesOfWord) {
#pragma omp simd
    for (int i = 0; i < kEntriesOfWord; ++i)
      flags[i] = u8(keeps(first + i));
  } else {
    std::memset(flags, 0, sizeof flags);
    for (int i = 0; i < count; ++i)
      flags[i] = u8(keeps(first + i));
  }
  std::uint64_t word = 0;
  for (int byte = 0; byte < 8; ++byte) {
    std::uint64_t eight;
    std::memcpy(&eight, flags + 8 * byte, 8);
    // The product moves the lowest bits of eight bytes into its highest byte, in their order.
    word |= (eight * 0x0102040810204080u >> 56) << (8 * byte);
  }
  return word;
}

inline int ones_of(std::uint64_t word) { return __builtin_popcountll(word); }

// Counts the kept entries of each of the rows [begin, end), which have contiguous entries; returns
// the sum. `word_of(first, count)` is as kept_word.
template <class I, class WordOf>
i64 count_kept(const I* indptr, i64 begin, i64 end, I* lengths, const WordOf& word_of) {
  const i64 last = indptr[end];
  i64 first = indptr[begin], behind = first; // the entries of the word
  i64 earlier = 0, before_row = 0;           // kept in earlier words, and in earlier rows
  std::uint64_t word = 0;
  for (i64 i = begin; i < end; ++i) {
    const i64 row_end = indptr[i + 1];
    while (behind < row_end) {
      earlier += ones_of(word);
      first = behind;
      behind = first + kEntriesOfWord < last ? first + kEntriesOfWord : last;
      word = word_of(first, behind - first);
    }
    const i64 inside = row_end - first; // 1 to 64 of the word, or 0 before the first one
    const std::uint64_t below = inside > 0 ? ~std::uint64_t(0) >> (kEntriesOfWord - inside) : 0;
    const i64 before_next = earlier + ones_of(word & below);
    lengths[i] = I(before_next - before_row);
    before_row = before_next;
  }
  return before_row;
}

// Calls store(to, e) for the kept entries of [first, last), `to` rising by one for each. It is also
// called for entries that are not kept, before the call that overwrites them.
template <class WordOf, class Store>
void copy_kept(i64 first, i64 last, i64 to, const WordOf& word_of, const Store& store) {
  for (; first < last; first += kEntriesOfWord) {
    const i64 count = last - first < kEntriesOfWord ? last - first : kEntriesOfWord;
    std::uint64_t word = word_of(first, count);
    const int kept = ones_of(word);
    if (kept == kEntriesOfWord) {
#pragma omp simd
      for (int i = 0; i < kEntriesOfWord; ++i)
        store(to + i, first + i);
    } else if (kept <= kFewOfWord) {
      for (i64 place = to; word != 0; word &= word - 1)
        store(place++, first + __builtin_ctzll(word));
    } else {
      const i64 stop = to + kept;
      for (i64 e = first, place = to; place < stop; ++e, word >>= 1) {
        store(place, e);
        place += i64(word & 1);
      }
    }
    to += kept;
  }
}

} // namespace wl
