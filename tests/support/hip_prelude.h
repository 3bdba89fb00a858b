// What hipRTC gives a kernel before its first line, as far as kernels of the C family use it. With
// it clang compiles them for GPUs of AMD; calls of the mathematical library are not linked.

#define __HIPCC_RTC__ 1
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

struct Index { unsigned x; };
#define blockIdx (Index{__builtin_amdgcn_workgroup_id_x()})
#define threadIdx (Index{__builtin_amdgcn_workitem_id_x()})
#define blockDim (Index{__builtin_amdgcn_workgroup_size_x()})

static __device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#define SAME_BITS(name, To, From)                                                                 \
  static __device__ inline To name(From x) { return __builtin_bit_cast(To, x); }
SAME_BITS(__float_as_uint, unsigned, float)
SAME_BITS(__uint_as_float, float, unsigned)
SAME_BITS(__int_as_float, float, int)
SAME_BITS(__double_as_longlong, long long, double)
SAME_BITS(__longlong_as_double, double, long long)

#define OF_ONE(name)                                                                              \
  extern "C" __device__ float name##f(float);                                                     \
  extern "C" __device__ double name(double);
#define OF_TWO(name)                                                                              \
  extern "C" __device__ float name##f(float, float);                                              \
  extern "C" __device__ double name(double, double);
OF_ONE(sqrt) OF_ONE(exp) OF_ONE(exp2) OF_ONE(expm1) OF_ONE(log) OF_ONE(log2) OF_ONE(log1p)
OF_ONE(log10) OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(asin) OF_ONE(acos) OF_ONE(atan)
OF_ONE(sinh) OF_ONE(cosh) OF_ONE(tanh) OF_ONE(asinh) OF_ONE(acosh) OF_ONE(atanh) OF_ONE(erf)
OF_ONE(erfc) OF_ONE(floor) OF_ONE(ceil) OF_ONE(trunc) OF_ONE(rint) OF_ONE(round) OF_ONE(fabs)
OF_ONE(lgamma) OF_ONE(cbrt) OF_TWO(pow) OF_TWO(atan2) OF_TWO(fmod) OF_TWO(hypot)
OF_TWO(copysign) OF_TWO(fmin) OF_TWO(fmax) OF_TWO(nextafter)
extern "C" __device__ float fmaf(float, float, float);
extern "C" __device__ double fma(double, double, double);
