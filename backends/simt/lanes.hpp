// The device functions that have different names in the GPU compilers: indices of a work-item, and
// exchange of values within its wave and its block. All other headers of this folder, and the
// launcher in unified/map_simt.hpp, call only these functions.
//
// The compiling backend defines WL_WARP (lanes of a wave) and WL_BLOCK (work-items of a block).
// Under SYCL on a CPU both may be 1; then a block is one work-item and shuffles are the identity.
//
// Every lane of a wave must reach every shuffle, and every work-item of a block every barrier: trip
// counts are uniform and no lane returns early. Blocks never wait for one another.
#pragma once
#include "unified/types.hpp"

#if defined(WL_LOCKSTEP)
#include WL_LOCKSTEP_HEADER
#endif

#if !defined(WL_WARP) || !defined(WL_BLOCK)
#error "the compiling backend must define WL_WARP and WL_BLOCK"
#endif

// WL_ENTRY(name)(WL_GRID ...) { WL_RUN(statement) } defines a kernel; WL_SHARED defines an array in
// shared memory.
#if defined(WL_CUDA) || defined(WL_HIP)
// WL_BLOCKS_EACH, if defined, is the number of blocks that a multiprocessor must be able to hold:
// it limits the registers of a work-item.
#if defined(WL_BLOCKS_EACH)
#define WL_ENTRY(name) extern "C" __global__ void __launch_bounds__(WL_BLOCK, WL_BLOCKS_EACH) name
#else
#define WL_ENTRY(name) extern "C" __global__ void __launch_bounds__(WL_BLOCK) name
#endif
#define WL_GRID
#define WL_RUN(...)                                                                                \
  const wl::item it{};                                                                             \
  __VA_ARGS__
#define WL_SHARED(T, name, N) __shared__ T name[N]
#elif defined(WL_SYCL)
#define WL_PROPERTY(...)                                                                           \
  SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::__VA_ARGS__))
#if WL_WARP > 1
#define WL_WIDTHS WL_PROPERTY(sub_group_size<WL_WARP>) WL_PROPERTY(work_group_size<WL_BLOCK>)
#else
#define WL_WIDTHS WL_PROPERTY(work_group_size<WL_BLOCK>)
#endif
#define WL_ENTRY(name) extern "C" SYCL_EXTERNAL WL_PROPERTY(nd_range_kernel<1>) WL_WIDTHS void name
#define WL_GRID
#define WL_RUN(...)                                                                                \
  const wl::item it{};                                                                             \
  __VA_ARGS__
// group_local_memory_for_overwrite crashes the run-time compiler 2026.2; this definition does not.
#define WL_SHARED(T, name, N) T(&name)[N] = wl::shared_array<T, N, __COUNTER__>
namespace wl {
template <class T, int N, int Tag>
inline sycl::ext::oneapi::experimental::work_group_static<T[N]> shared_array;
}
#elif defined(WL_LOCKSTEP)
#define WL_ENTRY(name) extern "C" void name
#define WL_GRID int wl_blocks,
#define WL_RUN(...)                                                                                \
  wl::lockstep::launch(wl_blocks, WL_BLOCK, [&] {                                                  \
    const wl::item it{};                                                                           \
    __VA_ARGS__                                                                                    \
  });
#define WL_SHARED(T, name, N)                                                                      \
  static wl::lockstep::shared_array<T, N> name##_memory;                                           \
  T(&name)[N] = name##_memory.cells()
#else
#error "the compiling backend must define one of WL_CUDA, WL_HIP, WL_SYCL, WL_LOCKSTEP"
#endif

namespace wl {

using u64 = unsigned long long;

// ---------------------------------------------------------------- indices of a work-item

#if defined(WL_SYCL)
namespace this_item = sycl::ext::oneapi::this_work_item;
struct item {
  int thread() const { return int(this_item::get_nd_item<1>().get_local_linear_id()); }
  i64 block() const { return i64(this_item::get_nd_item<1>().get_group_linear_id()); }
  i64 blocks() const { return i64(this_item::get_nd_item<1>().get_group_range(0)); }
  void barrier() const {
    if constexpr (WL_BLOCK > 1)
      sycl::group_barrier(this_item::get_work_group<1>());
  }
};
#elif defined(WL_LOCKSTEP)
struct item {
  int thread() const { return lockstep::thread(); }
  i64 block() const { return lockstep::block(); }
  i64 blocks() const { return lockstep::blocks(); }
  WL_DEVICE void barrier() const { lockstep::barrier(); }
};
#else
struct item {
  WL_DEVICE int thread() const { return int(threadIdx.x); }
  WL_DEVICE i64 block() const { return i64(blockIdx.x); }
  WL_DEVICE i64 blocks() const { return i64(gridDim.x); }
  WL_DEVICE void barrier() const {
#if defined(WL_CUDA) && WL_BLOCK == WL_WARP
    __syncwarp(); // the block is one wave: no other wave takes part in the barrier
#else
    __syncthreads();
#endif
  }
};
#endif

WL_DEVICE int lane_of(const item& it) { return it.thread() % WL_WARP; }
WL_DEVICE int wave_of(const item& it) { return it.thread() / WL_WARP; }

// ---------------------------------------------------------------- shuffles

#if WL_WARP == 1
WL_DEVICE i32 shuffle_word(i32 word, int) { return word; }
WL_DEVICE u64 ballot(bool vote) { return vote; }
#elif defined(WL_CUDA)
WL_DEVICE i32 shuffle_word(i32 word, int from) { return __shfl_sync(0xffffffffu, word, from); }
WL_DEVICE u64 ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
#elif defined(WL_HIP)
WL_DEVICE i32 shuffle_word(i32 word, int from) { return __shfl(word, from); }
WL_DEVICE u64 ballot(bool vote) { return __ballot(vote); }
#elif defined(WL_SYCL)
WL_DEVICE i32 shuffle_word(i32 word, int from) {
  return sycl::select_from_group(this_item::get_sub_group(), word, sycl::id<1>(from));
}
WL_DEVICE u64 ballot(bool vote) {
  // OR over the wave, one 32-bit word per half wave: the ballot extension does not exist
  // everywhere.
  constexpr int bits = 8 * sizeof(u32);
  const auto wave = this_item::get_sub_group();
  const int l = int(wave.get_local_linear_id());
  const u32 mine = vote ? 1u << l % bits : 0u;
  const u32 low = sycl::reduce_over_group(wave, l < bits ? mine : 0u, sycl::bit_or<u32>());
  const u32 high = sycl::reduce_over_group(wave, l < bits ? 0u : mine, sycl::bit_or<u32>());
  return u64(high) << bits | low;
}
#else
WL_DEVICE i32 shuffle_word(i32 word, int from) { return lockstep::exchange(word, from); }
WL_DEVICE u64 ballot(bool vote) { return lockstep::ballot(vote); }
#endif

template <class T>
struct words_of {
  static_assert(sizeof(T) % sizeof(i32) == 0, "shuffles move whole words");
  i32 word[sizeof(T) / sizeof(i32)];
};

// The value of lane `from` of this wave.
template <class T>
WL_DEVICE T shuffle(T value, int from) {
  auto words = __builtin_bit_cast(words_of<T>, value);
  for (int i = 0; i < int(sizeof(T) / sizeof(i32)); ++i)
    words.word[i] = shuffle_word(words.word[i], from);
  return __builtin_bit_cast(T, words);
}
// The value of lane `from` of this lane's group of W adjacent lanes. It is separate from the
// general shuffle, because on CUDA it is one instruction if `from` is a constant.
template <int W, class T>
WL_DEVICE T of_group(const item& it, T value, int from) {
#if defined(WL_CUDA)
  auto words = __builtin_bit_cast(words_of<T>, value);
#pragma unroll
  for (int i = 0; i < int(sizeof(T) / sizeof(i32)); ++i)
    words.word[i] = __shfl_sync(0xffffffffu, words.word[i], from, W);
  return __builtin_bit_cast(T, words);
#else
  return shuffle(value, lane_of(it) / W * W + from);
#endif
}
template <class T>
WL_DEVICE T shuffle_xor(const item& it, T value, int mask) {
  return shuffle(value, lane_of(it) ^ mask);
}
// The value of the lane `by` below this one; the lowest `by` lanes get their own value.
template <class T>
WL_DEVICE T shuffle_up(const item& it, T value, int by) {
  const int lane = lane_of(it);
  return shuffle(value, lane >= by ? lane - by : lane);
}

// The sum over W adjacent lanes, returned to each of them. W divides WL_WARP.
template <int W, class S>
WL_DEVICE S sum_of_lanes(const item& it, S value) {
  static_assert(W <= WL_WARP && WL_WARP % W == 0, "groups of lanes divide the wave");
  for (int d = W / 2; d > 0; d /= 2) {
    S other = shuffle_xor(it, value, d);
    value += other;
  }
  return value;
}

// Adds up A values of each lane over L adjacent lanes: lane l gets sum l % A. Each step halves the
// number of values to exchange. It takes A - 1 shuffles and one for every doubling from A to L; one
// sum at a time would take A log2(L) shuffles.
template <int L, int A, class S>
WL_DEVICE S reduce_scatter(const item& it, S (&each)[A]) {
  static_assert(A <= L && L % A == 0, "every sum has a lane");
  const int lane = lane_of(it);
#pragma unroll
  for (int half = A / 2; half > 0; half /= 2) {
    const bool upper = (lane & half) != 0;
#pragma unroll
    for (int a = 0; a < half; ++a) {
      // Both values are read before one is selected: otherwise CUDA's compiler selects between
      // their addresses, which moves the array to local memory.
      const S low = each[a], high = each[a + half];
      const S given = upper ? low : high;
      each[a] = (upper ? high : low) + shuffle_xor(it, given, half);
    }
  }
  S sum = each[0];
#pragma unroll
  for (int d = A; d < L; d *= 2) {
    const S other = shuffle_xor(it, sum, d);
    sum += other;
  }
  return sum;
}

// The sum over the block, returned to every work-item. The order of the additions depends on
// WL_BLOCK alone.
template <class S>
WL_DEVICE S sum_of_block(const item& it, S value) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  value = sum_of_lanes<WL_WARP>(it, value);
  if constexpr (waves > 1) {
    WL_SHARED(S, of_wave, waves);
    it.barrier();
    if (lane_of(it) == 0)
      of_wave[wave_of(it)] = value;
    it.barrier();
    if constexpr (waves > 8 && waves <= WL_WARP) {
      value = sum_of_lanes<WL_WARP>(it, lane_of(it) < waves ? of_wave[lane_of(it)] : S{});
    } else {
      value = of_wave[0];
      for (int w = 1; w < waves; ++w)
        value += of_wave[w];
    }
  }
  return value;
}

// The sum over the block, in the lanes of the first wave; the value in other waves is undefined.
// Contains a barrier of the block.
template <class S>
WL_DEVICE S sum_in_first_wave(const item& it, S value, S* of_wave) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  static_assert(waves <= WL_WARP, "a wave holds the sums of all waves");
  value = sum_of_lanes<WL_WARP>(it, value);
  if (lane_of(it) == 0)
    of_wave[wave_of(it)] = value;
  it.barrier();
  if (wave_of(it) == 0)
    value = sum_of_lanes<WL_WARP>(it, lane_of(it) < waves ? of_wave[lane_of(it)] : S{});
  return value;
}

// A barrier of the lanes of a wave; earlier stores are visible to the wave afterwards.
#if defined(WL_CUDA) || defined(WL_LOCKSTEP)
WL_DEVICE void wave_barrier() { __syncwarp(); }
#elif defined(WL_HIP)
WL_DEVICE void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
#else
WL_DEVICE void wave_barrier() { sycl::group_barrier(this_item::get_sub_group()); }
#endif

// Loads before this point, except load_pack, are issued before it. CUDA's compiler would issue each
// load at its use, and a wave would wait for each.
WL_DEVICE void asked_before() {
#if defined(WL_CUDA)
  __syncwarp();
#endif
}

// ---------------------------------------------------------------- between blocks

#if defined(WL_SYCL)
WL_DEVICE void fence() {
  sycl::atomic_fence(sycl::memory_order::acq_rel, sycl::memory_scope::device);
}
WL_DEVICE i32 fetch_add(i32* counter, i32 by) {
  return sycl::atomic_ref<i32, sycl::memory_order::relaxed, sycl::memory_scope::device,
                          sycl::access::address_space::global_space>(*counter)
      .fetch_add(by);
}
#elif defined(WL_LOCKSTEP)
inline void fence() {}
inline i32 fetch_add(i32* counter, i32 by) {
  const i32 before = *counter;
  *counter += by;
  return before;
}
#else
WL_DEVICE void fence() { __threadfence(); }
WL_DEVICE i32 fetch_add(i32* counter, i32 by) { return atomicAdd(counter, by); }
#endif

// True in every work-item of exactly one of `blocks` blocks, the last to arrive. This block may
// read the results of the other blocks. The counter is 0 before the launch and after it.
WL_DEVICE bool is_last_of(const item& it, i32* counter, i64 blocks) {
  WL_SHARED(i32, last, 1);
  fence();
  it.barrier();
  if (it.thread() == 0) {
    last[0] = fetch_add(counter, 1) == i32(blocks - 1);
    if (last[0])
      *counter = 0;
  }
  it.barrier();
  const bool is_last = last[0] != 0;
  fence();
  it.barrier();
  return is_last;
}

WL_DEVICE bool is_last_block(const item& it, i32* counter) {
  return is_last_of(it, counter, it.blocks());
}

// ---------------------------------------------------------------- loads

// A load of data that is read once, such as a matrix; it should not evict vectors from the caches.
// WL_RESIDENT: the data is read repeatedly and should stay in the caches.
#if defined(WL_CUDA) && defined(WL_RESIDENT)
template <class T>
WL_DEVICE T read_once(const T* place) {
  return *place;
}
#elif defined(WL_CUDA)
template <class T>
WL_DEVICE T read_once(const T* place) {
  if constexpr (sizeof(T) == 1)
    return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const unsigned char*>(place)));
  else if constexpr (sizeof(T) == 2)
    return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const short*>(place)));
  else if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const int*>(place)));
  else if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const long long*>(place)));
  else
    return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const int4*>(place)));
}
#else
template <class T>
WL_DEVICE T read_once(const T* place) {
  return *place;
}
#endif

} // namespace wl
