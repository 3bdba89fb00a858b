// What CUDA C and HIP have that C++ has not, so that a compiler of the host takes kernels. The threads of a
// block are contexts, each of which runs up to the next barrier.

#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

using std::fmaf;
#define __device__
#define __global__
#define __shared__ static

struct Index { unsigned x; };
static Index blockIdx, threadIdx, blockDim;

static inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
static inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static inline long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
static inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }

static ucontext_t scheduler, contexts[1024];
static bool done[1024];
static std::function<void()> kernel;

static void __syncthreads() { swapcontext(&contexts[threadIdx.x], &scheduler); }

static void thread() {
  unsigned number = threadIdx.x;
  kernel();
  done[number] = true;
}

static void run(unsigned blocks, unsigned threads, bool waits, std::function<void()> given) {
  kernel = given;
  blockDim.x = threads;
  static std::vector<char> stacks(1024 * 65536);
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
    for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) {
      if (!waits) { kernel(); continue; }
      unsigned t = threadIdx.x;
      getcontext(&contexts[t]);
      contexts[t].uc_stack.ss_sp = &stacks[t * 65536];
      contexts[t].uc_stack.ss_size = 65536;
      contexts[t].uc_link = &scheduler;
      makecontext(&contexts[t], thread, 0);
      done[t] = false;
    }
    for (bool left = waits; left;) {
      left = false;
      for (unsigned t = 0; t < threads; t++) {
        if (done[t]) continue;
        threadIdx.x = t;
        swapcontext(&scheduler, &contexts[t]);
        left = left || !done[t];
      }
    }
  }
}

// The call of a launcher whose arguments are given by their addresses, as HIP gives them.
template <class... Types, size_t... Numbers>
static void unpacked(void (*launcher)(unsigned, unsigned, Types...), unsigned blocks, unsigned threads,
                     void **given, std::index_sequence<Numbers...>) {
  launcher(blocks, threads, *(std::remove_cv_t<Types> *)given[Numbers]...);
}

template <class... Types>
static void unpack(void (*launcher)(unsigned, unsigned, Types...), unsigned blocks, unsigned threads,
                   void **given) {
  unpacked(launcher, blocks, threads, given, std::index_sequence_for<Types...>());
}
