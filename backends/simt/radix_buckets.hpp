// Sorted keys of entries from the words that radix_move.hpp moves. A block sorts a bucket, or the
// words are sorted already.
#pragma once
#include "simt/radix_split.hpp"

namespace wl {

// The largest number of entries and of keys of a bucket, and of entries with one key that one
// work-item sorts. Blocks are large: a bucket is read three times, and a small number of buckets
// stays in the caches.
constexpr int kBucketEntries = 12288;
constexpr int kBucketKeys = 2048;
constexpr int kFewEntries = 40;

// Calls use(e, key) for the entries of a bucket and the masked bits of their keys; several loads of
// a work-item are in flight at once.
template <class Use>
WL_DEVICE void for_keys(const item& it, word_parts parts, u64 mask, int count, const i64* words,
                        Use&& use) {
  constexpr int each = 4;
  for (int first = it.thread(); first < count; first += each * WL_BLOCK) {
    int key[each];
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const int e = first + j * WL_BLOCK;
      key[j] = e < count ? int(parts.key(u64(words[e])) & mask) : -1;
    }
#pragma unroll
    for (int j = 0; j < each; ++j)
      if (key[j] >= 0)
        use(first + j * WL_BLOCK, key[j]);
  }
}

// Sorts a few numbers in place. Most are already in order.
WL_DEVICE void sort_few(u16* numbers, int count) {
  for (int a = 1; a < count; ++a) {
    const u16 one = numbers[a];
    int to = a;
    for (; to > 0 && numbers[to - 1] > one; --to)
      numbers[to] = numbers[to - 1];
    numbers[to] = one;
  }
}

// Sorts distinct numbers below kBucketEntries in place, as the bits of a set.
WL_DEVICE void sort_many(const item& it, u16* numbers, int count) {
  constexpr int bits = 8 * sizeof(u32), words = kBucketEntries / bits;
  constexpr int each = (words + WL_BLOCK - 1) / WL_BLOCK;
  WL_SHARED(u32, set, words);
  for (int w = it.thread(); w < words; w += WL_BLOCK)
    set[w] = 0;
  it.barrier();
  for (int at = it.thread(); at < count; at += WL_BLOCK)
    or_to_cell(set + numbers[at] / bits, u32(1) << numbers[at] % bits);
  it.barrier();
  i32 ones = 0;
  for (int w = it.thread() * each; w < (it.thread() + 1) * each && w < words; ++w)
    ones += ones_in(set[w]);
  i32 to = sums_before(it, ones).before;
  for (int w = it.thread() * each; w < (it.thread() + 1) * each && w < words; ++w)
    for (u32 left = set[w]; left != 0; left &= left - 1)
      numbers[to++] = u16(w * bits + ones_in((left & (0 - left)) - 1));
  it.barrier();
}

// Sorts each bucket by key; entries with equal keys keep their order. Each block sorts one bucket:
// it counts the entries of each key, moves their indices to their keys, and sorts the indices of
// each key. Buckets have 2^key_bits keys each; key_bits are the lowest bits of a word's key.
template <class I>
WL_DEVICE void sort_bucket(const item& it, i64 n, i64 key_bits, i64 entry_bits, i64 other_bits,
                           const i32* starts, const i64* words, I* indptr, I* others, I* order) {
  constexpr int each = (kBucketKeys + WL_BLOCK - 1) / WL_BLOCK, cells = each * WL_BLOCK;
  constexpr int most_listed = kBucketEntries / kFewEntries;
  WL_SHARED(i32, ends, cells);
  WL_SHARED(u16, placed, kBucketEntries);
  WL_SHARED(u16, listed, most_listed); // keys with many entries
  WL_SHARED(i32, many, 1);
  const word_parts parts{entry_bits, other_bits};
  const i64 first_key = it.block() << key_bits;
  const int keys = int(n - first_key < (i64(1) << key_bits) ? n - first_key : i64(1) << key_bits);
  const i64 begin = starts[it.block()];
  const int count = int(starts[it.block() + 1] - begin);
  const i64* const own = words + begin;
  const u64 mask = (u64(1) << key_bits) - 1;

  for (int c = it.thread(); c < cells; c += WL_BLOCK)
    ends[c] = 0;
  if (it.thread() == 0)
    many[0] = 0;
  it.barrier();
  for_keys(it, parts, mask, count, own, [&](int, int key) { add_to_cell(ends + key, 1); });
  it.barrier();
  i32 length[each], mine = 0;
#pragma unroll
  for (int k = 0; k < each; ++k) {
    length[k] = ends[it.thread() * each + k];
    mine += length[k];
    if (length[k] > kFewEntries)
      listed[add_to_cell(many, 1)] = u16(it.thread() * each + k);
  }
  i32 before = sums_before(it, mine).before;
#pragma unroll
  for (int k = 0; k < each; ++k) {
    ends[it.thread() * each + k] = before;
    before += length[k];
  }
  it.barrier();
  for (int c = it.thread(); c < keys; c += WL_BLOCK)
    indptr[first_key + c] = I(begin + ends[c]);
  if (it.thread() == 0 && first_key + keys == n)
    indptr[n] = I(begin + count);
  it.barrier();
  for_keys(it, parts, mask, count, own,
           [&](int e, int key) { placed[add_to_cell(ends + key, 1)] = u16(e); });
  it.barrier();

  // From here on `ends` holds the end of each key's entries; the entries of a key begin at the end
  // of the previous key.
  for (int c = it.thread(); c < keys; c += WL_BLOCK) {
    const int low = c > 0 ? ends[c - 1] : 0, high = ends[c];
    if (high - low <= kFewEntries)
      sort_few(placed + low, high - low);
  }
  it.barrier();
  for (int l = 0; l < many[0]; ++l) {
    const int c = listed[l], low = c > 0 ? ends[c - 1] : 0;
    sort_many(it, placed + low, ends[c] - low);
  }
  for (int at = it.thread(); at < count; at += WL_BLOCK) {
    const int e = placed[at];
    const u64 word = u64(own[e]);
    others[begin + at] = I(parts.other(word));
    order[begin + at] = I(parts.entry(word));
  }
}

// Unpacks sorted words, and finds the beginning of each key, which is between the beginnings of its
// last digit. This digit is `shift` bits above the lowest bit of the key.
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
