// Sorted keys of entries from the words that radix_split.hpp moves: a block sorts a bucket, or the
// words are sorted already.
#pragma once
#include "radix_split.hpp"

namespace wl {

// Entries and keys of a bucket at most, and entries of a key from which ranks come from a set of
// bits. A block has 37 KiB, so that six are on a multiprocessor of Hopper.
constexpr int kBucketEntries = 12288;
constexpr int kBucketKeys = 2048;
constexpr int kManyEntries = 64;

// Calls use(e, key) for the entries of a bucket; some loads of a work-item are under way at once.
template <class Use>
WL_DEVICE void for_keys(const item& it, word_parts parts, int count, const i64* words, Use&& use) {
  constexpr int each = 4;
  for (int first = it.thread(); first < count; first += each * WL_BLOCK) {
    int key[each];
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const int e = first + j * WL_BLOCK;
      key[j] = e < count ? int(parts.key(u64(words[e]))) : -1;
    }
#pragma unroll
    for (int j = 0; j < each; ++j)
      if (key[j] >= 0)
        use(first + j * WL_BLOCK, key[j]);
  }
}

// Sorts each bucket by key; its entries are in their order. A block has a bucket: it counts the
// entries of each key, puts them to their keys in any order, and counts for each how many of its
// key come before it. Buckets are of 2^key_bits keys each, and words have as many bits of the key.
template <class I>
WL_DEVICE void sort_bucket(const item& it, i64 n, i64 key_bits, i64 entry_bits, i64 other_bits,
                           const i32* starts, const i64* words, I* indptr, I* others, I* order) {
  constexpr int most_each = kBucketKeys / WL_BLOCK;
  constexpr int set_bits = 8 * sizeof(u32), set_words = kBucketEntries / set_bits;
  constexpr int words_each = (set_words + WL_BLOCK - 1) / WL_BLOCK;
  constexpr int most_listed = kBucketEntries / kManyEntries;
  WL_SHARED(i32, ends, kBucketKeys);
  WL_SHARED(u16, placed, kBucketEntries);
  WL_SHARED(u32, set, set_words);
  WL_SHARED(i32, set_before, set_words);
  WL_SHARED(i32, listed, most_listed + 1); // keys with many entries, and how many such keys
  const word_parts parts{entry_bits, other_bits};
  const i64 first_key = it.block() << key_bits;
  const int keys = int(n - first_key < (i64(1) << key_bits) ? n - first_key : i64(1) << key_bits);
  const i64 begin = starts[it.block()];
  const int count = int(starts[it.block() + 1] - begin);
  const i64* const own = words + begin;

  for (int c = it.thread(); c < kBucketKeys; c += WL_BLOCK)
    ends[c] = 0;
  if (it.thread() == 0)
    listed[most_listed] = 0;
  it.barrier();
  for_keys(it, parts, count, own, [&](int, int key) { add_to_cell(ends + key, 1); });
  it.barrier();
  i32 length[most_each], mine = 0;
#pragma unroll
  for (int k = 0; k < most_each; ++k) {
    length[k] = ends[it.thread() * most_each + k];
    mine += length[k];
    if (length[k] >= kManyEntries)
      listed[add_to_cell(listed + most_listed, 1)] = it.thread() * most_each + k;
  }
  i32 before = sums_before(it, mine).before;
#pragma unroll
  for (int k = 0; k < most_each; ++k) {
    ends[it.thread() * most_each + k] = before;
    before += length[k];
  }
  it.barrier();
  for (int c = it.thread(); c < keys; c += WL_BLOCK)
    indptr[first_key + c] = I(begin + ends[c]);
  if (it.thread() == 0 && first_key + keys == n)
    indptr[n] = I(begin + count);
  it.barrier();
  for_keys(it, parts, count, own,
           [&](int e, int key) { placed[add_to_cell(ends + key, 1)] = u16(e); });
  it.barrier();

  // From here on the entries of a key end where `ends` says, and begin where those before it end.
  for (int at = it.thread(); at < count; at += WL_BLOCK) {
    const int e = placed[at];
    const u64 word = u64(own[e]);
    const int key = int(parts.key(word));
    const int low = key > 0 ? ends[key - 1] : 0, high = ends[key];
    if (high - low < kManyEntries) {
      int rank = low;
      for (int other = low; other < high; ++other)
        rank += placed[other] < e;
      others[begin + rank] = I(parts.other(word));
      order[begin + rank] = I(parts.entry(word));
    }
  }
  const int many = listed[most_listed];
  for (int l = 0; l < many; ++l) {
    const int key = listed[l];
    const int low = key > 0 ? ends[key - 1] : 0, high = ends[key];
    for (int w = it.thread(); w < set_words; w += WL_BLOCK)
      set[w] = 0;
    it.barrier();
    for (int at = low + it.thread(); at < high; at += WL_BLOCK)
      or_to_cell(set + placed[at] / set_bits, u32(1) << placed[at] % set_bits);
    it.barrier();
    i32 ones = 0;
    for (int w = it.thread() * words_each; w < (it.thread() + 1) * words_each; ++w)
      ones += w < set_words ? ones_in(set[w]) : 0;
    i32 sum = sums_before(it, ones).before;
    for (int w = it.thread() * words_each; w < (it.thread() + 1) * words_each; ++w)
      if (w < set_words) {
        set_before[w] = sum;
        sum += ones_in(set[w]);
      }
    it.barrier();
    for (int at = low + it.thread(); at < high; at += WL_BLOCK) {
      const int e = placed[at];
      const u32 lower = set[e / set_bits] & ((u32(1) << e % set_bits) - 1);
      const i64 to = begin + low + set_before[e / set_bits] + ones_in(lower);
      const u64 word = u64(own[e]);
      others[to] = I(parts.other(word));
      order[to] = I(parts.entry(word));
    }
    it.barrier();
  }
}

// The parts of sorted words, and where each key begins: between where those of its last digit do,
// which is `shift` bits above the lowest of the key.
template <class I>
WL_DEVICE void unpack_sorted(const item& it, i64 count, i64 n, i64 shift, i64 entry_bits,
                             i64 other_bits, const i32* starts, const i64* words, I* indptr,
                             I* others, I* order) {
  const word_parts parts{entry_bits, other_bits};
  const i64 step = it.blocks() * WL_BLOCK, first = it.block() * WL_BLOCK + it.thread();
  for (i64 e = first; e < count; e += step) {
    const u64 word = u64(words[e]);
    others[e] = I(parts.other(word));
    order[e] = I(parts.entry(word));
  }
  for (i64 key = first; key <= n; key += step) {
    i64 low = key < n ? i64(starts[key >> shift]) : count;
    i64 high = key < n ? i64(starts[(key >> shift) + 1]) : count;
    while (low < high) {
      const i64 middle = low + (high - low) / 2;
      if (i64(parts.key(u64(words[middle]))) < key)
        low = middle + 1;
      else
        high = middle;
    }
    indptr[key] = I(low);
  }
}

} // namespace wl
