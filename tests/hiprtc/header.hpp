// What hiprtc puts before every source, as far as it can be in the way of one: HIP's macros, types and names.
// Source: ROCm/clr, hipamd/src/hiprtc/cmake/HIPRTC.cmake and the headers that it lists.
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
#define __align__(x) __attribute__((aligned(x)))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(most) __attribute__((amdgpu_flat_work_group_size(1, most)))
#define HIP_INCLUDE_HIP_HIP_RUNTIME_H
#define HW_ID 4
#define HW_ID_CU_ID_SIZE 4
#define XCC_ID 20
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long clock_t;
namespace std {
using ::clock_t;
using ::ptrdiff_t;
template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
    typedef T type;
};
}  // namespace std
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef _Float16 __half;
struct dim3 {
    uint32_t x, y, z;
    constexpr __device__ dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
};
struct Coordinates {
    __device__ operator dim3() const { return dim3(__builtin_amdgcn_workitem_id_x()); }
};
static constexpr Coordinates threadIdx, blockIdx, blockDim, gridDim;
__device__ inline void __syncthreads() { __builtin_amdgcn_s_barrier(); }
__device__ inline int min(int x, int y) { return x < y ? x : y; }
__device__ inline int max(int x, int y) { return x < y ? y : x; }
__device__ inline int abs(int x) { return x < 0 ? -x : x; }
__device__ inline unsigned int __popc(unsigned int x) { return __builtin_popcount(x); }
__device__ inline unsigned int __clz(int x) { return __builtin_clz(x); }
