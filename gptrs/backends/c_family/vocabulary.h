/* The vocabulary of generated kernels: types of elements, their conversions, and functions of one
   element. The same kernels are C11 and OpenCL C; what differs between these is here.

   Narrow floats are f32 in arithmetic, truth values bytes 0 and 1, 4-bit integers the lower half of
   a byte. Integer arithmetic is done without a sign, where it wraps. */

#ifdef __OPENCL_VERSION__

#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define HAS_F64 1
#else
#define HAS_F64 0
#endif
#define INLINE static inline
#define GLOBAL __global
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
#define f32_bits(x) as_uint(x)
#define f32_of_bits(x) as_float((uint)(x))
#if HAS_F64
typedef double f64;
#define f64_bits(x) as_ulong(x)
#define f64_of_bits(x) as_double((ulong)(x))
#endif
#define OF_LIBRARY(T, name, function)                                                             \
  INLINE T T##_##name(T x) { return function(x); }
#define OF_LIBRARY_2(T, name, function)                                                           \
  INLINE T T##_##name(T x, T y) { return function(x, y); }
#define IN_F32(function) function
#define F32_INFINITY INFINITY
#define F32_NAN NAN

#elif defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)

#define ON_GPU 1

#define HAS_F64 1
#define INLINE static __device__ inline
#define GLOBAL
#define BARRIER() __syncthreads()
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define f32_bits(x) __float_as_uint(x)
#define f32_of_bits(x) __uint_as_float((u32)(x))
#define f64_bits(x) (u64)__double_as_longlong(x)
#define f64_of_bits(x) __longlong_as_double((i64)(x))
#define OF_LIBRARY(T, name, function)                                                             \
  INLINE T T##_##name(T x) { return function(x); }
#define OF_LIBRARY_2(T, name, function)                                                           \
  INLINE T T##_##name(T x, T y) { return function(x, y); }
#define IN_F32(function) function##f
#define F32_INFINITY __int_as_float(0x7f800000)
#define F32_NAN __int_as_float(0x7fc00000)

#else

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define HAS_F64 1
#define INLINE static inline
#define GLOBAL
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;
INLINE u32 f32_bits(f32 x) { u32 bits; memcpy(&bits, &x, sizeof bits); return bits; }
INLINE f32 f32_of_bits(u32 bits) { f32 x; memcpy(&x, &bits, sizeof x); return x; }
INLINE u64 f64_bits(f64 x) { u64 bits; memcpy(&bits, &x, sizeof bits); return bits; }
INLINE f64 f64_of_bits(u64 bits) { f64 x; memcpy(&x, &bits, sizeof x); return x; }
#define COPIES_PANELS 1
#define OF_LIBRARY(T, name, function)                                                             \
  INLINE T T##_##name(T x) { return function(x); }
#define OF_LIBRARY_2(T, name, function)                                                           \
  INLINE T T##_##name(T x, T y) { return function(x, y); }
#define IN_F32(function) function##f
#define F32_INFINITY INFINITY
#define F32_NAN NAN

#endif

/* Positions and extents: 64 bits but in WGSL, where they have 32. */
typedef i64 isize;

INLINE isize least(isize x, isize y) { return x < y ? x : y; }
INLINE isize greatest(isize x, isize y) { return x > y ? x : y; }
/* The quotient of extents, rounded down. */
INLINE isize floor_quotient(isize x, isize y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); }

/* The upper word of a product of words. */
INLINE u32 u32_high_product(u32 x, u32 y) { return (u32)(((u64)x * y) >> 32); }

/* Narrow floats, to f32 and back: rounded to nearest even. */

INLINE f32 f32_of_bf16(u16 bits) { return f32_of_bits((u32)bits << 16); }

INLINE u16 bf16_of_f32(f32 x) {
  u32 bits = f32_bits(x);
  u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (u16)(x == x ? rounded : ((bits >> 16) | 64u));
}

INLINE f32 f32_of_f16(u16 bits) {
  u32 sign = (u32)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  u32 finite = f32_bits(f32_of_bits(rest << 13) * 0x1p112f);
  u32 infinite = 0x7f800000u | (rest & 0x3ffu) << 13;
  return f32_of_bits(sign | (rest < 0x7c00u ? finite : infinite));
}

INLINE u16 f16_of_f32(f32 x) {
  u32 bits = f32_bits(x), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  u32 small = f32_bits(f32_of_bits(size) + 0.5f) - 0x3f000000u;
  u32 normal = (size + 0xfffu + ((size >> 13) & 1u) - 0x38000000u) >> 13;
  u32 result = size < 0x38800000u ? small : normal;
  result = size >= 0x477ff000u ? 0x7c00u : result;
  result = size > 0x7f800000u ? 0x7e00u | ((size >> 13) & 0x3ffu) : result;
  return (u16)(sign | result);
}

INLINE f32 f32_of_e5m2(u8 bits) { return f32_of_f16((u16)((u32)bits << 8)); }

INLINE u8 e5m2_of_f32(f32 x) {
  u32 bits = f32_bits(x), sign = (bits >> 24) & 0x80u, size = bits & 0x7fffffffu;
  u32 small = f32_bits(f32_of_bits(size) + 128.0f) - 0x43000000u;
  u32 normal = (size + 0xfffffu + ((size >> 21) & 1u) - 0x38000000u) >> 21;
  u32 result = size < 0x38800000u ? small : normal;
  result = size >= 0x47700000u ? 0x7cu : result;
  result = size > 0x7f800000u ? 0x7eu : result;
  return (u8)(sign | result);
}

INLINE f32 f32_of_e4m3(u8 bits) {
  u32 sign = (u32)(bits & 0x80u) << 24, rest = bits & 0x7fu;
  u32 finite = f32_bits(f32_of_bits(rest << 20) * 0x1p120f);
  return f32_of_bits(sign | (rest < 0x7fu ? finite : 0x7fc00000u));
}

INLINE u8 e4m3_of_f32(f32 x) {
  u32 bits = f32_bits(x), sign = (bits >> 24) & 0x80u, size = bits & 0x7fffffffu;
  u32 small = f32_bits(f32_of_bits(size) + 16384.0f) - 0x46800000u;
  u32 normal = (size + 0x7ffffu + ((size >> 20) & 1u) - 0x3c000000u) >> 20;
  u32 result = size < 0x3c800000u ? small : normal;
  return (u8)(sign | (size > 0x43e80000u ? 0x7fu : result)); /* above 464 there is only NaN */
}

INLINE i8 si4(u32 x) { return (i8)(((x & 15) ^ 8) - 8); }
INLINE i8 ui4(u32 x) { return (i8)(x & 15); }

/* Functions of floats. Their special cases are those of NumPy. */

#define OF_FLOATS(T, U, F, SIGN)                                                                  \
  OF_LIBRARY(T, exp, F(exp)) OF_LIBRARY(T, log, F(log)) OF_LIBRARY(T, tanh, F(tanh))              \
  OF_LIBRARY(T, erf, F(erf)) OF_LIBRARY(T, sqrt, F(sqrt)) OF_LIBRARY(T, sin, F(sin))              \
  OF_LIBRARY(T, cos, F(cos)) OF_LIBRARY(T, floor, F(floor)) OF_LIBRARY(T, ceil, F(ceil))          \
  OF_LIBRARY(T, round, F(rint)) OF_LIBRARY(T, trunc, F(trunc)) OF_LIBRARY(T, abs, F(fabs))        \
  OF_LIBRARY(T, log1p, F(log1p)) OF_LIBRARY(T, log2, F(log2)) OF_LIBRARY(T, log10, F(log10))      \
  OF_LIBRARY(T, expm1, F(expm1)) OF_LIBRARY(T, exp2, F(exp2)) OF_LIBRARY(T, tan, F(tan))          \
  OF_LIBRARY(T, asin, F(asin)) OF_LIBRARY(T, acos, F(acos)) OF_LIBRARY(T, atan, F(atan))          \
  OF_LIBRARY(T, sinh, F(sinh)) OF_LIBRARY(T, cosh, F(cosh)) OF_LIBRARY(T, asinh, F(asinh))        \
  OF_LIBRARY(T, acosh, F(acosh)) OF_LIBRARY(T, atanh, F(atanh)) OF_LIBRARY(T, cbrt, F(cbrt))      \
  OF_LIBRARY_2(T, pow, F(pow)) OF_LIBRARY_2(T, atan2, F(atan2)) OF_LIBRARY_2(T, hypot, F(hypot))  \
  OF_LIBRARY_2(T, copysign, F(copysign)) OF_LIBRARY_2(T, fmod, F(fmod))                           \
  OF_LIBRARY_2(T, nextafter, F(nextafter))                                                        \
  INLINE T T##_reciprocal(T x) { return 1 / x; }                                                  \
  /* NaN wins, and of zeros +0 is the greater one. */                                             \
  INLINE T T##_maximum(T x, T y) {                                                                \
    T other = x > y || x != x ? x : y;                                                            \
    return x == y ? T##_of_bits(T##_bits(x) & T##_bits(y)) : other;                               \
  }                                                                                               \
  INLINE T T##_minimum(T x, T y) {                                                                \
    T other = x < y || x != x ? x : y;                                                            \
    return x == y ? T##_of_bits(T##_bits(x) | T##_bits(y)) : other;                               \
  }                                                                                               \
  INLINE u8 T##_is_nan(T x) { return (u8)(x != x); }                                              \
  INLINE u8 T##_is_finite(T x) { return (u8)(x - x == 0); }                                       \
  INLINE u8 T##_is_inf(T x) { return (u8)(T##_abs(x) == (T)F32_INFINITY); }                       \
  INLINE T T##_sign(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }                          \
  INLINE u8 T##_signbit(T x) { return (u8)(T##_bits(x) >> SIGN); }                                \
  INLINE T T##_remainder(T x, T y) {                                                              \
    T modulus = T##_fmod(x, y);                                                                   \
    T moved = (y < 0) != (modulus < 0) ? modulus + y : modulus;                                   \
    return y == 0 ? modulus : modulus != 0 ? moved : T##_copysign(0, y);                          \
  }                                                                                               \
  INLINE T T##_floor_divide(T x, T y) {                                                           \
    if (y == 0) return x / y;                                                                     \
    T modulus = T##_fmod(x, y), quotient = (x - modulus) / y;                                     \
    if (modulus != 0 && (y < 0) != (modulus < 0)) quotient -= 1;                                  \
    if (quotient == 0) return T##_copysign(0, x / y);                                             \
    T whole = T##_floor(quotient);                                                                \
    return quotient - whole > (T)0.5 ? whole + 1 : whole;                                         \
  }

OF_FLOATS(f32, u32, IN_F32, 31)
/* A term of a matrix product, which may be rounded once or twice. */
#ifdef ON_GPU
INLINE f32 f32_multiply_add(f32 sum, f32 x, f32 y) { return fmaf(x, y, sum); }
#else
INLINE f32 f32_multiply_add(f32 sum, f32 x, f32 y) { return sum + x * y; }
#endif
#if HAS_F64
#define IN_F64(function) function
OF_FLOATS(f64, u64, IN_F64, 63)

/* f64 as f32, rounded to odd: rounding that once more rounds the f64 once. Source: Boldo and
   Melquiond, "When double rounding is odd". */
INLINE f32 odd_f32(f64 x) {
  f32 near = (f32)x;
  u32 bits = f32_bits(near);
  if (x != x) return near;
  if (f64_abs((f64)near) > f64_abs(x)) bits -= 1;
  return f32_of_bits((f64)f32_of_bits(bits) != x ? bits | 1u : bits);
}
#endif

/* Functions of integers: T wraps as U does. Where there is no result, it is 0. */

#define OF_INTEGERS(T, U, BITS)                                                                   \
  INLINE T T##_pow(T x, isize power) {                                                            \
    U base = (U)x, result = 1;                                                                    \
    for (; power > 0; power >>= 1, base *= base) if (power & 1) result *= base;                   \
    return (T)result;                                                                             \
  }                                                                                               \
  INLINE T T##_shift_left(T x, T by) {                                                            \
    return by < 0 || by >= BITS ? (T)0 : (T)((u64)x << by);                                       \
  }                                                                                               \
  INLINE T T##_shift_right(T x, T by) {                                                           \
    T all = (T)(by < 0 ? 0 : BITS - 1);                                                           \
    return by < 0 ? (T)0 : by >= BITS ? (T)((T)-1 < 0 ? x >> all : 0) : (T)(x >> by);             \
  }                                                                                               \
  INLINE T T##_maximum(T x, T y) { return x > y ? x : y; }                                        \
  INLINE T T##_minimum(T x, T y) { return x < y ? x : y; }                                        \
  INLINE T T##_sign(T x) { return (T)((x > 0) - (x < 0)); }                                       \
  INLINE T T##_gcd(T x, T y) {                                                                    \
    u64 a = x < 0 ? 0 - (u64)x : (u64)x, b = y < 0 ? 0 - (u64)y : (u64)y;                         \
    while (b != 0) { u64 rest = a % b; a = b; b = rest; }                                         \
    return (T)a;                                                                                  \
  }

#define OF_SIGNED(T, U, BITS)                                                                     \
  OF_INTEGERS(T, U, BITS)                                                                         \
  INLINE T T##_abs(T x) { return x < 0 ? (T)(0 - (U)x) : x; }                                     \
  INLINE T T##_div(T x, T y) {                                                                    \
    if (y == 0) return 0;                                                                         \
    if (y == -1) return (T)(0 - (U)x);                                                            \
    return (T)(x / y - (x % y != 0 && (x < 0) != (y < 0)));                                       \
  }                                                                                               \
  INLINE T T##_remainder(T x, T y) {                                                              \
    if (y == 0 || y == -1) return 0;                                                              \
    T rest = (T)(x % y);                                                                          \
    return (T)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);                             \
  }

#define OF_UNSIGNED(T, U, BITS)                                                                   \
  OF_INTEGERS(T, U, BITS)                                                                         \
  INLINE T T##_abs(T x) { return x; }                                                             \
  INLINE T T##_div(T x, T y) { return y == 0 ? (T)0 : (T)(x / y); }                               \
  INLINE T T##_remainder(T x, T y) { return y == 0 ? (T)0 : (T)(x % y); }

OF_SIGNED(i8, u32, 8)
OF_SIGNED(i16, u32, 16)
OF_SIGNED(i32, u32, 32)
OF_SIGNED(i64, u64, 64)
OF_UNSIGNED(u8, u32, 8)
OF_UNSIGNED(u16, u32, 16)
OF_UNSIGNED(u32, u32, 32)
OF_UNSIGNED(u64, u64, 64)

/* Floats as integers: toward zero; what is beyond the limits becomes the limit, NaN becomes 0. */

#define TRUNCATE(F, T, LOW, HIGH, BELOW, ABOVE)                                                   \
  INLINE T T##_of_##F(F x) {                                                                      \
    T inside = (T)(x > (F)(BELOW) && x < (F)(ABOVE) ? x : 0);                                     \
    return x >= (F)(ABOVE) ? (T)(HIGH) : x <= (F)(BELOW) ? (T)(LOW) : inside;                     \
  }
#define TRUNCATES(F)                                                                              \
  TRUNCATE(F, i8, -128, 127, -0x1p7f, 0x1p7f)                                                     \
  TRUNCATE(F, i16, -32768, 32767, -0x1p15f, 0x1p15f)                                              \
  TRUNCATE(F, i32, -2147483647 - 1, 2147483647, -0x1p31f, 0x1p31f)                                \
  TRUNCATE(F, i64, -9223372036854775807 - 1, 9223372036854775807, -0x1p63f, 0x1p63f)              \
  TRUNCATE(F, u8, 0, 255, 0.0f, 0x1p8f)                                                           \
  TRUNCATE(F, u16, 0, 65535, 0.0f, 0x1p16f)                                                       \
  TRUNCATE(F, u32, 0, 4294967295u, 0.0f, 0x1p32f)                                                 \
  TRUNCATE(F, u64, 0, 18446744073709551615u, 0.0f, 0x1p64f)                                       \
  INLINE i8 si4_of_##F(F x) { return x >= 7 ? 7 : x <= -8 ? -8 : (i8)(x == x ? x : 0); }          \
  INLINE i8 ui4_of_##F(F x) { return x >= 15 ? 15 : x <= 0 ? 0 : (i8)(x == x ? x : 0); }

TRUNCATES(f32)
#if HAS_F64
TRUNCATES(f64)
#endif

/* The sum of 8 numbers, by halves. */
#define SUM_OF_8(T)                                                                               \
  INLINE T T##_sum8(const T *x) {                                                                 \
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));                     \
  }
SUM_OF_8(f32)
#if HAS_F64
SUM_OF_8(f64)
#endif

/* Vectors of 8 floats, which products on CPUs are made of. */
#ifndef ON_GPU

#ifdef __OPENCL_VERSION__
typedef float8 f32x8;
INLINE f32x8 f32x8_all(f32 x) { return (f32x8)(x); }
#define f32x8_load(p) vload8(0, p)
#define f32x8_store(p, v) vstore8(v, 0, p)
#define f32x8_add_product(sum, x, v) ((sum) + (x) * (v))
#define f32x8_add_products(sum, u, v) ((sum) + (u) * (v))
INLINE void f32x8_put(f32 *p, f32x8 v) { vstore8(v, 0, p); }
INLINE f32x8 f32x8_get(const f32 *p) { return vload8(0, p); }
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi" /* all that takes a vector is inlined */
typedef f32 f32x8 __attribute__((vector_size(32)));
INLINE f32x8 f32x8_all(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
INLINE f32x8 f32x8_load(const f32 *p) { f32x8 v; memcpy(&v, p, sizeof v); return v; }
INLINE void f32x8_store(f32 *p, f32x8 v) { memcpy(p, &v, sizeof v); }
#define f32x8_get f32x8_load
#define f32x8_put f32x8_store
INLINE f32x8 f32x8_add_product(f32x8 sum, f32 x, f32x8 v) { return sum + x * v; }
INLINE f32x8 f32x8_add_products(f32x8 sum, f32x8 u, f32x8 v) { return sum + u * v; }
#else
typedef struct { f32 of[8]; } f32x8;
INLINE f32x8 f32x8_all(f32 x) { return (f32x8){{x, x, x, x, x, x, x, x}}; }
INLINE f32x8 f32x8_load(const f32 *p) { f32x8 v; memcpy(&v, p, sizeof v); return v; }
INLINE void f32x8_store(f32 *p, f32x8 v) { memcpy(p, &v, sizeof v); }
#define f32x8_get f32x8_load
#define f32x8_put f32x8_store
INLINE f32x8 f32x8_add_product(f32x8 sum, f32 x, f32x8 v) {
  for (int lane = 0; lane < 8; lane++) sum.of[lane] += x * v.of[lane];
  return sum;
}
INLINE f32x8 f32x8_add_products(f32x8 sum, f32x8 u, f32x8 v) {
  for (int lane = 0; lane < 8; lane++) sum.of[lane] += u.of[lane] * v.of[lane];
  return sum;
}
#endif

INLINE f32 f32x8_sum(f32x8 v) { f32 of[8]; f32x8_put(of, v); return f32_sum8(of); }
/* The first `count` of 8 numbers, then zeros. */
INLINE f32x8 f32x8_load_part(GLOBAL const f32 *p, isize count) {
  f32 of[8];
  for (int lane = 0; lane < 8; lane++) of[lane] = lane < count ? p[lane] : 0.0f;
  return f32x8_get(of);
}
INLINE void f32x8_store_part(GLOBAL f32 *p, f32x8 v, isize count) {
  f32 of[8];
  f32x8_put(of, v);
  for (int lane = 0; lane < 8 && lane < count; lane++) p[lane] = of[lane];
}
#define OF_NARROW(NAME, U)                                                                        \
  INLINE f32x8 f32x8_load_##NAME(GLOBAL const U *p) {                                             \
    f32 of[8];                                                                                    \
    for (int lane = 0; lane < 8; lane++) of[lane] = f32_of_##NAME(p[lane]);                       \
    return f32x8_get(of);                                                                         \
  }                                                                                               \
  INLINE f32x8 f32x8_load_part_##NAME(GLOBAL const U *p, isize count) {                           \
    f32 of[8];                                                                                    \
    for (int lane = 0; lane < 8; lane++) of[lane] = lane < count ? f32_of_##NAME(p[lane]) : 0.0f; \
    return f32x8_get(of);                                                                         \
  }                                                                                               \
  INLINE void f32x8_store_part_##NAME(GLOBAL U *p, f32x8 v, isize count) {                        \
    f32 of[8];                                                                                    \
    f32x8_put(of, v);                                                                             \
    for (int lane = 0; lane < 8 && lane < count; lane++) p[lane] = NAME##_of_f32(of[lane]);       \
  }
OF_NARROW(bf16, u16)
OF_NARROW(f16, u16)
OF_NARROW(e4m3, u8)
OF_NARROW(e5m2, u8)
#endif
