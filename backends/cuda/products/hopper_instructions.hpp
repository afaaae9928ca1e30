// Instructions of Hopper (compute capability 9.0a only): barriers that count bytes, bulk copies,
// and asynchronous products of tiles.
#pragma once
#include "cuda/products/counting_barriers.hpp"
#include "cuda/products/descriptors.hpp"
#include "simt/narrow.hpp"

namespace wl {

WL_DEVICE u32 shared_address(const void* place) { return u32(__cvta_generic_to_shared(place)); }

// ---------------------------------------------------------------- barriers in shared memory

// Makes initialized barriers visible to the copy engine.
WL_DEVICE void barriers_are_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
WL_DEVICE void arrive_expecting(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Named barriers of two warpgroups: one warpgroup waits until the other has arrived.
WL_DEVICE void named_wait(int barrier) {
  asm volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory");
}
WL_DEVICE void named_arrive(int barrier) {
  asm volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory");
}

// Copies 16-byte units to shared memory; the barrier counts the bytes that have arrived.
WL_DEVICE void copy_to_shared(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

// ---------------------------------------------------------------- copies

// Loads the entries that the lowest eight bits of a mask select, one after the other from `at` on;
// other results are 0. It is one asm statement, because between several of them the compiler copied
// registers.
#define WL_BIT(e) " and.b32 bit, %9, " #e ";\n setp.ne.u32 p" #e ", bit, 0;\n"
#define WL_LOAD(TYPE, SIZE, i, e)                                                                  \
  " mov.u32 %" #i ", 0;\n @p" #e " ld.shared." TYPE " %" #i ", [at];\n"                            \
  " @p" #e " add.u32 at, at, " SIZE ";\n"
#define WL_UNPACK(TYPE, SIZE)                                                                      \
  asm volatile("{.reg .pred p1, p2, p4, p8, p16, p32, p64, p128;\n .reg .u32 bit, at;\n"           \
               " mov.u32 at, %8;\n" WL_BIT(1) WL_BIT(2) WL_BIT(4) WL_BIT(8) WL_BIT(16) WL_BIT(32)  \
                   WL_BIT(64) WL_BIT(128) WL_LOAD(TYPE, SIZE, 0, 1) WL_LOAD(TYPE, SIZE, 1, 2)      \
                       WL_LOAD(TYPE, SIZE, 2, 4) WL_LOAD(TYPE, SIZE, 3, 8)                         \
                           WL_LOAD(TYPE, SIZE, 4, 16) WL_LOAD(TYPE, SIZE, 5, 32)                   \
                               WL_LOAD(TYPE, SIZE, 6, 64) WL_LOAD(TYPE, SIZE, 7, 128) "}"          \
               : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "=&r"(x[4]), "=&r"(x[5]),     \
                 "=&r"(x[6]), "=&r"(x[7])                                                          \
               : "r"(at), "r"(mask))
template <class Word>
WL_DEVICE void unpack(u32 mask, u32 at, u32 (&x)[8]) {
  if constexpr (sizeof(Word) == 4)
    WL_UNPACK("u32", "4");
  else
    WL_UNPACK("u16", "2");
}
#undef WL_UNPACK
#undef WL_LOAD
#undef WL_BIT
WL_DEVICE u32 shared_word(u32 at) {
  u32 word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at));
  return word;
}
WL_DEVICE u32 shared_short(u32 at) {
  u32 word;
  asm volatile("ld.shared.u16 %0, [%1];" : "=r"(word) : "r"(at));
  return word;
}
WL_DEVICE float2 shared_pair(u32 at) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(at));
  return pair;
}

// ---------------------------------------------------------------- registers of a warpgroup

template <int Registers>
WL_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
WL_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// ---------------------------------------------------------------- products of tiles

WL_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
WL_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Makes the writes of this work-item to shared memory visible to products that are issued after a
// barrier.
WL_DEVICE void publish_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Waits for all but the last `Groups` committed groups of products.
template <int Groups>
WL_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

// Running products read their registers until a wait: the values named here stay in their registers
// until after this point.
template <int Count>
WL_DEVICE void keep(u32 (&held)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i)
    asm volatile("" : "+r"(held[i])::"memory");
}
template <int Count>
WL_DEVICE void keep(float (&held)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i)
    asm volatile("" : "+f"(held[i])::"memory");
}
template <class Row, int Columns, int Count>
WL_DEVICE void keep(Row (&held)[Count][Columns]) {
#pragma unroll
  for (int i = 0; i < Count; ++i)
    keep(held[i]);
}

// Of a (64 x 16) in registers each of the four warps holds 16 rows, in four registers of each lane.
#define WL_8(d, i)                                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),      \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define WL_16(d, i) WL_8(d, i), WL_8(d, i + 8)
#define WL_32(d, i) WL_16(d, i), WL_16(d, i + 16)
#define WL_64(d, i) WL_32(d, i), WL_32(d, i + 32)
#define WL_WGMMA(N, TYPE, LIST, A, DESCRIPTOR, ADD, TURNED, ...)                                   \
  asm volatile("{.reg .pred p;\n setp.ne.u32 p, " ADD ", 0;\n"                                     \
               " wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" LIST "}, {" A \
               "}, " DESCRIPTOR ", p, 1, 1, " TURNED ";}"                                          \
               : __VA_ARGS__                                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))
#define WL_WGMMA_OF_TWO(N, TYPE, LIST, A, B, ADD, ...)                                             \
  asm volatile("{.reg .pred p;\n setp.ne.u32 p, " ADD ", 0;\n"                                     \
               " wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" LIST "}, " A  \
               ", " B ", p, 1, 1, 0, 0;}"                                                          \
               : __VA_ARGS__                                                                       \
               : "l"(a), "l"(b), "r"(add))
#define WL_R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WL_R16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WL_R32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WL_R48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WL_R64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WL_R80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WL_R96                                                                                     \
  "%96, %97, %98, %99, %100, %101, %102, %103, "                                                   \
  "%104, %105, %106, %107, %108, %109, %110, %111"
#define WL_R112                                                                                    \
  "%112, %113, %114, %115, %116, %117, %118, %119, "                                               \
  "%120, %121, %122, %123, %124, %125, %126, %127"

#define WL_LIST32 WL_R0
#define WL_LIST64 WL_R0 ", " WL_R16
#define WL_LIST128 WL_LIST64 ", " WL_R32 ", " WL_R48
#define WL_LIST256 WL_LIST128 ", " WL_R64 ", " WL_R80 ", " WL_R96 ", " WL_R112

// d (64 x N; 0 if not `add`) += a b. a (64 x 16) is in registers or in shared memory
// (rows_descriptor). b (16 x N) is stored as tile_descriptor describes or, transposed, as
// rows_descriptor does.
template <int N, class T>
struct tile_product;
// The same for b (16 x N) stored in the rows of rows_descriptor.
template <int N, class T>
struct weighted_product;
#define WL_TILE_PRODUCT(N, T, TYPE, A, B, ADD, A_OF_TWO, B_OF_TWO, ADD_OF_TWO, ...)                \
  template <>                                                                                      \
  struct tile_product<N, T> {                                                                      \
    WL_DEVICE static void add(float* d, const u32* a, u64 b, u32 add) {                            \
      WL_WGMMA(N, TYPE, WL_LIST##N, A, B, ADD, "0", __VA_ARGS__);                                  \
    }                                                                                              \
    WL_DEVICE static void add(float* d, u64 a, u64 b, u32 add) {                                   \
      WL_WGMMA_OF_TWO(N, TYPE, WL_LIST##N, A_OF_TWO, B_OF_TWO, ADD_OF_TWO, __VA_ARGS__);           \
    }                                                                                              \
  };                                                                                               \
  template <>                                                                                      \
  struct weighted_product<N, T> {                                                                  \
    WL_DEVICE static void add(float* d, const u32* a, u64 b, u32 add) {                            \
      WL_WGMMA(N, TYPE, WL_LIST##N, A, B, ADD, "1", __VA_ARGS__);                                  \
    }                                                                                              \
  }
#define WL_TILE_PRODUCTS(T, TYPE)                                                                  \
  WL_TILE_PRODUCT(32, T, TYPE, "%16, %17, %18, %19", "%20", "%21", "%16", "%17", "%18",            \
                  WL_16(d, 0));                                                                    \
  WL_TILE_PRODUCT(64, T, TYPE, "%32, %33, %34, %35", "%36", "%37", "%32", "%33", "%34",            \
                  WL_32(d, 0));                                                                    \
  WL_TILE_PRODUCT(128, T, TYPE, "%64, %65, %66, %67", "%68", "%69", "%64", "%65", "%66",           \
                  WL_64(d, 0));                                                                    \
  WL_TILE_PRODUCT(256, T, TYPE, "%128, %129, %130, %131", "%132", "%133", "%128", "%129", "%130",  \
                  WL_64(d, 0), WL_64(d, 64))
WL_TILE_PRODUCTS(half, "f16");
WL_TILE_PRODUCTS(bfloat, "bf16");
#undef WL_TILE_PRODUCTS
#undef WL_LIST32
#undef WL_LIST64
#undef WL_LIST128
#undef WL_LIST256
#undef WL_R0
#undef WL_R16
#undef WL_R32
#undef WL_R48
#undef WL_R64
#undef WL_R80
#undef WL_R96
#undef WL_R112
#undef WL_TILE_PRODUCT
#undef WL_WGMMA
#undef WL_WGMMA_OF_TWO
#undef WL_64
#undef WL_32
#undef WL_16
#undef WL_8

} // namespace wl
