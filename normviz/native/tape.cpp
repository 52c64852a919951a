// A tape: the operations of one transformer in a list, run forwards, then backwards.
//
// Every tensor is a place in one of four buffers of the caller: activations, their gradients,
// parameters, and their gradients. A place counts floats from the start of its buffer. A tensor is
// [rows, channels] with a row stride, so a part of a wider tensor (queries, keys or values) is a
// tensor too. Nothing is allocated here, no state is kept, and one thread does all the work: equal
// inputs give equal bits. NaN and inf are results and stay what they are (no fast-math).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int64_t VERSION = 3;  // of the structs and functions below; `library.py` has the same number

enum Kind : int64_t { EMBED, NORM, LINEAR, ACTIVATION, ATTENTION, MIX, GAIN, MASK, LOSS, GATED, ROTATE };
enum Norm : int64_t { LAYER, RMS, UNIT, COMPLETED, PARTIAL };
enum Activation : int64_t { RELU, GELU, TANH, ERF, SILU, RELU2 };
enum Positions : int64_t { LEARNED, FIXED, ABSENT };
enum Mask : int64_t { CAUSAL, ALL };
enum Function : int64_t { VALUE, SIZE, REST, SIGMOID, ROOT, EXP, GATE };
enum Flag : int64_t {
    ADD_A = 1, ADD_B = 2, ADD_C = 4,  // the gradient of this input is added to what is there
    NO_A = 8, NO_B = 16,              // it is not computed
    ADD_WEIGHT = 32,                  // the same for the parameter's gradient
    ONE_PLUS = 64,                    // the scale is 1 + weight
    PER_GROUP = 128,                  // k neighbouring groups of channels have weights of their own
};

struct Op {
    int64_t kind, mode, flags;      // `mode`: which norm, activation, or function of a gain
    int64_t rows, groups, n, k;     // the output is [rows, groups * n]; k: see each operation
    int64_t a, b, c, lda, ldb, ldc; // inputs, and floats from one row to the next
    int64_t out, ldo;
    int64_t ga, gb, gc, gout;       // gradients, with the strides of their tensors
    int64_t weight, bias;           // parameters; -1: none
    int64_t save;                   // activations that the backward pass needs; of a mask: its factors
    double c0, c1;
};

struct Run {
    const Op* ops;
    int64_t count;
    float *values, *grads;          // activations and their gradients
    const float* parameters;
    float* parameter_grads;
    const int64_t *tokens, *targets;
    int64_t batch, length, heads, watched;
    double* seen;                   // of each attention: largest |logit|, entropy over its maximum, weight on the first
    float* scratch;                 // length^2 + 8 length, and the entries of the widest gain
    double* sums;                   // twice the entries of the widest gain, and the length
    double loss;
};

// ------------------------------------------------------------------ matrix product

// A tile is TALL rows and one or two vectors of NARROW_WIDTH numbers, as the registers of the CPU allow.
#ifdef __wasm__
constexpr int NARROW_WIDTH = 4, TALL = 4, DEEP = 256;
#else
constexpr int NARROW_WIDTH = 8, TALL = 6, DEEP = 256;
#endif

// In a struct: a template drops the attributes of a type, and with them "may lie anywhere".
template <int WIDE> struct Wide { typedef float V __attribute__((vector_size(4 * WIDE), aligned(4), may_alias)); };

enum Start { ZERO, ADD, BIAS };
enum Triangle { FULL, DEPTH_TO_ROW, DEPTH_FROM_ROW, COLUMNS_FROM_ROW };  // causal: what is not zero

struct Matrix { const float* at; int64_t row, column; };  // element (i, j) is at[i * row + j * column]

// C[M, columns] = start + A[M, depth] panel[depth, VECTORS * WIDE]
template <int M, int WIDE, int VECTORS>
[[gnu::always_inline]] inline void tile(int64_t depth, Matrix a, const float* panel, float* c, int64_t ldc, Start start, int columns,
          const float* bias) {
    using V = typename Wide<WIDE>::V;
    constexpr int N = VECTORS * WIDE;
    V sum[M][VECTORS];
    for (int i = 0; i < M; i++) {
        float row[N] = {};
        if (start == ADD) std::memcpy(row, c + i * ldc, sizeof(float) * columns);
        const float* from = start == BIAS ? bias : start == ADD && columns == N ? c + i * ldc : row;
        for (int j = 0; j < VECTORS; j++) sum[i][j] = *(const V*)(from + j * WIDE);
    }
    for (int64_t k = 0; k < depth; k++) {
        V b[VECTORS];
        for (int j = 0; j < VECTORS; j++) b[j] = *(const V*)(panel + k * N + j * WIDE);
        for (int i = 0; i < M; i++) {
            const float x = a.at[i * a.row + k * a.column];
            for (int j = 0; j < VECTORS; j++) sum[i][j] += x * b[j];
        }
    }
    for (int i = 0; i < M; i++) {
        if (columns == N) {
            for (int j = 0; j < VECTORS; j++) *(V*)(c + i * ldc + j * WIDE) = sum[i][j];
            continue;
        }
        float row[N];
        for (int j = 0; j < VECTORS; j++) *(V*)(row + j * WIDE) = sum[i][j];
        std::memcpy(c + i * ldc, row, sizeof(float) * columns);
    }
}

template <int WIDE, int VECTORS>
[[gnu::always_inline]] inline void product(int64_t M, int64_t N, int64_t K, Matrix A, Matrix B, float* C, int64_t ldc, bool add,
             const float* bias, Triangle triangle) {
    constexpr int NR = VECTORS * WIDE;
    float panel[DEEP * NR], padded[NR] = {};
    for (int64_t n0 = 0; n0 < N; n0 += NR) {
        const int columns = (int)std::min<int64_t>(NR, N - n0);
        if (bias) std::memcpy(padded, bias + n0, sizeof(float) * columns);
        for (int64_t k0 = 0; k0 < K; k0 += DEEP) {
            const int64_t deep = std::min<int64_t>(DEEP, K - k0);
            if (columns < NR) std::memset(panel, 0, sizeof(float) * deep * NR);
            const float* from = B.at + k0 * B.row + n0 * B.column;
            if (B.column == 1 && columns == NR)
                for (int64_t k = 0; k < deep; k++) std::memcpy(panel + k * NR, from + k * B.row, sizeof(float) * NR);
            else
                for (int j = 0; j < columns; j++)
                    for (int64_t k = 0; k < deep; k++) panel[k * NR + j] = from[k * B.row + j * B.column];
            const Start start = k0 || add ? ADD : bias ? BIAS : ZERO;
            for (int64_t i = 0, m; i < M; i += m) {
                const int64_t left = M - i;
                m = left >= TALL ? TALL : left >= 4 ? 4 : left >= 2 ? 2 : 1;
                if (triangle == COLUMNS_FROM_ROW && n0 + columns <= i) continue;
                int64_t low = 0, high = deep;
                if (triangle == DEPTH_TO_ROW) high = std::clamp<int64_t>(i + m - k0, 0, deep);
                if (triangle == DEPTH_FROM_ROW) low = std::clamp<int64_t>(i - k0, 0, deep);
                if (low == high && start == ADD) continue;
                const Matrix a{A.at + i * A.row + (k0 + low) * A.column, A.row, A.column};
                const float* p = panel + low * NR;
                float* c = C + i * ldc + n0;
                if (m == TALL) tile<TALL, WIDE, VECTORS>(high - low, a, p, c, ldc, start, columns, padded);
                else if (m == 4) tile<4, WIDE, VECTORS>(high - low, a, p, c, ldc, start, columns, padded);
                else if (m == 2) tile<2, WIDE, VECTORS>(high - low, a, p, c, ldc, start, columns, padded);
                else tile<1, WIDE, VECTORS>(high - low, a, p, c, ldc, start, columns, padded);
            }
        }
    }
}

// Vectors of 16 numbers, where the CPU has them (AVX-512). Each number of C is the same sum in the same order, so
// both ways give the same bits. A test compiles with NARROW and compares them.
#if defined(__x86_64__) && !defined(NARROW)
#define WIDER
const bool wide = __builtin_cpu_supports("avx512f");

[[gnu::target("avx512f"), gnu::noinline]]
void wide_product(int64_t M, int64_t N, int64_t K, Matrix A, Matrix B, float* C, int64_t ldc, bool add, const float* bias) {
    product<16, 2>(M, N, K, A, B, C, ldc, add, bias, FULL);
}
#endif

// C[M, N] = A[M, K] B[K, N], plus C where `add`, plus bias[N] where there is one
[[gnu::noinline]]
void matmul(int64_t M, int64_t N, int64_t K, Matrix A, Matrix B, float* C, int64_t ldc, bool add = false,
            const float* bias = nullptr, Triangle triangle = FULL) {
#ifdef WIDER
    if (wide && triangle == FULL && N >= 32) return wide_product(M, N, K, A, B, C, ldc, add, bias);
#endif
    if (N <= NARROW_WIDTH) product<NARROW_WIDTH, 1>(M, N, K, A, B, C, ldc, add, bias, triangle);
    else product<NARROW_WIDTH, 2>(M, N, K, A, B, C, ldc, add, bias, triangle);
}

// ------------------------------------------------------------------ functions of one number

// exp of x <= 88, relative error 2e-7; 0 below -87; NaN stays NaN (after Cephes' expf)
inline float exp_of(float x) {
    constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    const float y = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float shifted = y * 1.44269504f + ROUND, whole = shifted - ROUND;
    const float f = (y - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * f * f + f + 1.0f;
    const uint32_t power = (std::bit_cast<uint32_t>(shifted) + 127u) << 23;
    const uint32_t keep = x < -87.0f ? 0u : ~0u;  // a mask: a branch would keep loops from becoming vectors
    return std::bit_cast<float>(std::bit_cast<uint32_t>(p * std::bit_cast<float>(power)) & keep);
}

inline float tanh_of(float x) {  // near 0 a polynomial (Cephes' tanhf), else by exp
    const float z = x * x, size = std::fabs(x);
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float far = 1.0f - 2.0f / (exp_of(2.0f * size) + 1.0f);
    return size < 0.625f ? x + x * z * p : x < 0 ? -far : far;
}

inline float erf_of(float x) {  // near 0 a polynomial (Cephes' erff), else Abramowitz and Stegun 7.1.26
    const float z = x * x, size = std::fabs(x), t = 1.0f / (1.0f + 0.3275911f * size);
    float p = 7.853861353153693e-5f;
    p = p * z - 8.010193625184903e-4f;
    p = p * z + 5.188327685732524e-3f;
    p = p * z - 2.685381193529856e-2f;
    p = p * z + 1.128358514861418e-1f;
    p = p * z - 3.761262582423300e-1f;
    p = p * z + 1.128379165726710f;
    float q = 1.061405429f;
    q = q * t - 1.453152027f;
    q = q * t + 1.421413741f;
    q = q * t - 0.284496736f;
    q = q * t + 0.254829592f;
    const float far = 1.0f - q * t * exp_of(-z);
    return size < 1.0f ? x * p : x < 0 ? -far : far;
}

inline float gelu_cdf(float x) { return 0.5f * (1.0f + erf_of(x * 0.70710678f)); }
inline float gelu_slope(float x) { return gelu_cdf(x) + x * 0.39894228f * exp_of(-0.5f * x * x); }
inline float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }
inline float silu_slope(float x) { const float s = sigmoid(x); return s * (1.0f + x * (1.0f - s)); }

template <class F> void each(int64_t n, F f) {
    #pragma omp simd
    for (int64_t i = 0; i < n; i++) f(i);
}

void activate(int64_t mode, int64_t n, const float* x, float* y) {
    switch (mode) {
    case RELU: each(n, [=](int64_t i) { y[i] = x[i] < 0 ? 0.0f : x[i]; }); break;
    case GELU: each(n, [=](int64_t i) { y[i] = x[i] * gelu_cdf(x[i]); }); break;
    case TANH: each(n, [=](int64_t i) { y[i] = tanh_of(x[i]); }); break;
    case ERF: each(n, [=](int64_t i) { y[i] = erf_of(x[i]); }); break;
    case SILU: each(n, [=](int64_t i) { y[i] = x[i] * sigmoid(x[i]); }); break;
    case RELU2: each(n, [=](int64_t i) { y[i] = x[i] < 0 ? 0.0f : x[i] * x[i]; }); break;
    }
}
// RELU gets its output as x, which has the sign of its input
void activate_backward(int64_t mode, int64_t n, const float* x, const float* dy, float* dx) {
    switch (mode) {
    case RELU: each(n, [=](int64_t i) { dx[i] = x[i] <= 0 ? 0.0f : dy[i]; }); break;
    case GELU: each(n, [=](int64_t i) { dx[i] = dy[i] * gelu_slope(x[i]); }); break;
    case TANH: each(n, [=](int64_t i) { const float y = tanh_of(x[i]); dx[i] = dy[i] * (1.0f - y * y); }); break;
    case ERF: each(n, [=](int64_t i) { dx[i] = dy[i] * 1.12837917f * exp_of(-x[i] * x[i]); }); break;
    case SILU: each(n, [=](int64_t i) { dx[i] = dy[i] * silu_slope(x[i]); }); break;
    case RELU2: each(n, [=](int64_t i) { dx[i] = x[i] <= 0 ? 0.0f : dy[i] * 2.0f * x[i]; }); break;
    }
}

// y = activation(a) b, both [rows, n]
void gated(const Run& r, const Op& o) {
    for (int64_t row = 0; row < o.rows; row++) {
        const float *a = r.values + o.a + row * o.lda, *b = r.values + o.b + row * o.ldb;
        float* y = r.values + o.out + row * o.ldo;
        if (o.mode == SILU) each(o.n, [=](int64_t i) { y[i] = a[i] * sigmoid(a[i]) * b[i]; });
        else each(o.n, [=](int64_t i) { y[i] = a[i] * gelu_cdf(a[i]) * b[i]; });
    }
}
void gated_backward(const Run& r, const Op& o) {
    for (int64_t row = 0; row < o.rows; row++) {
        const float *a = r.values + o.a + row * o.lda, *b = r.values + o.b + row * o.ldb;
        const float* dy = r.grads + o.gout + row * o.ldo;
        float *da = r.grads + o.ga + row * o.lda, *db = r.grads + o.gb + row * o.ldb;
        if (o.mode == SILU)
            each(o.n, [=](int64_t i) { da[i] = dy[i] * b[i] * silu_slope(a[i]), db[i] = dy[i] * a[i] * sigmoid(a[i]); });
        else
            each(o.n, [=](int64_t i) { da[i] = dy[i] * b[i] * gelu_slope(a[i]), db[i] = dy[i] * a[i] * gelu_cdf(a[i]); });
    }
}

// ------------------------------------------------------------------ norms

// y = (x - m) s (one_plus + weight) + bias, over n channels of each row.
//     LAYER      m the mean, s = 1 / sqrt(variance + eps)
//     RMS        s = 1 / sqrt(mean x^2 + eps)
//     UNIT       s = 1 / max(|x|, eps)
//     COMPLETED  s = 1 / sqrt((sum x^2 + (sum x)^2) / (n + 1) + eps)
//     PARTIAL    s = 1 / (RMS of the first k channels + eps)
// Saved of each row: the mean, the length, the sum or the RMS, as the norm needs it, and s.
template <int FIXED>
void norm_rows(const Op& o, const float* x, float* y, const float* weight, const float* bias, float* save) {
    const int64_t n = FIXED ? FIXED : o.n;
    const float plus = o.flags & ONE_PLUS ? 1.0f : 0.0f, eps = (float)o.c0;
    for (int64_t r = 0; r < o.rows; r++, x += o.lda, y += o.ldo, save += 2) {
        float sum = 0, squares = 0, mean = 0, kept = 0, s;
        if (o.mode == LAYER || o.mode == COMPLETED) {
            #pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < n; i++) sum += x[i];
        }
        if (o.mode == LAYER) kept = mean = sum / n;
        const int64_t counted = o.mode == PARTIAL ? o.k : n;
        #pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < counted; i++) squares += (x[i] - mean) * (x[i] - mean);
        switch (o.mode) {
        case UNIT: kept = std::sqrt(squares); s = 1.0f / (kept < eps ? eps : kept); break;
        case COMPLETED: kept = sum; s = 1.0f / std::sqrt((squares + sum * sum) / (n + 1) + eps); break;
        case PARTIAL: kept = std::sqrt(squares / counted); s = 1.0f / (kept + eps); break;
        default: s = 1.0f / std::sqrt(squares / n + eps);
        }
        save[0] = kept, save[1] = s;
        if (!weight) for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * s;
        else if (!bias) for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * s * (plus + weight[i]);
        else for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * s * (plus + weight[i]) + bias[i];
    }
}

template <int FIXED>
void norm_rows_backward(const Op& o, const float* x, const float* dy, float* dx, const float* weight, float* dweight,
                        float* dbias, const float* save) {
    const int64_t n = FIXED ? FIXED : o.n, counted = o.mode == PARTIAL ? o.k : n;
    const float plus = o.flags & ONE_PLUS ? 1.0f : 0.0f;
    const bool add = o.flags & ADD_A;
    for (int64_t r = 0; r < o.rows; r++, x += o.lda, dy += o.ldo, dx += o.lda, save += 2) {
        const float s = save[1], mean = o.mode == LAYER ? save[0] : 0.0f;
        float sum = 0, dot = 0, more = 0;  // dx = s (g - sum - (h + more) dot), h the normed x, g its gradient
        #pragma omp simd reduction(+ : sum, dot)
        for (int64_t i = 0; i < n; i++) {
            const float g = weight ? dy[i] * (plus + weight[i]) : dy[i];
            sum += g, dot += g * ((x[i] - mean) * s);
        }
        switch (o.mode) {
        case LAYER: sum /= n, dot /= n; break;
        case RMS: sum = 0, dot /= n; break;
        case UNIT: sum = 0, dot = save[0] < (float)o.c0 ? 0.0f : dot; break;
        case COMPLETED: sum = 0, dot /= n + 1, more = save[0] * s; break;
        case PARTIAL: sum = 0, dot = save[0] == 0 ? 0.0f : dot / (counted * save[0] * s); break;
        }
        if (dweight) for (int64_t i = 0; i < n; i++) dweight[i] += dy[i] * ((x[i] - mean) * s);
        if (dbias) for (int64_t i = 0; i < n; i++) dbias[i] += dy[i];
        for (int64_t i = 0; i < counted; i++) {
            const float g = weight ? dy[i] * (plus + weight[i]) : dy[i];
            const float d = s * (g - sum - ((x[i] - mean) * s + more) * dot);
            dx[i] = add ? dx[i] + d : d;
        }
        for (int64_t i = counted; i < n; i++) {
            const float d = s * (weight ? dy[i] * (plus + weight[i]) : dy[i]);
            dx[i] = add ? dx[i] + d : d;
        }
    }
}

// Calls f<N> with the number of channels as a constant, where it is a usual one.
#define BY_WIDTH(f, n, ...) \
    switch (n) { \
    case 8: f<8>(__VA_ARGS__); break; \
    case 32: f<32>(__VA_ARGS__); break; \
    case 64: f<64>(__VA_ARGS__); break; \
    case 128: f<128>(__VA_ARGS__); break; \
    default: f<0>(__VA_ARGS__); \
    }

const float* at(const float* base, int64_t offset) { return offset < 0 ? nullptr : base + offset; }
float* at(float* base, int64_t offset) { return offset < 0 ? nullptr : base + offset; }
const float* past(const float* x, int64_t n) { return x ? x + n : nullptr; }
float* past(float* x, int64_t n) { return x ? x + n : nullptr; }

void norm(const Run& r, const Op& o) {
    for (int64_t g = 0; g < o.groups; g++) {
        const int64_t own = o.flags & PER_GROUP ? g % o.k * o.n : 0;
        const float* x = r.values + o.a + g * o.n;
        float *y = r.values + o.out + g * o.n, *save = r.values + o.save + 2 * g * o.rows;
        const float *weight = past(at(r.parameters, o.weight), own), *bias = past(at(r.parameters, o.bias), own);
        BY_WIDTH(norm_rows, o.n, o, x, y, weight, bias, save)
    }
}
void norm_backward(const Run& r, const Op& o) {
    const int64_t learned = o.flags & PER_GROUP ? o.k * o.n : o.n;
    float *dweight = at(r.parameter_grads, o.weight), *dbias = at(r.parameter_grads, o.bias);
    if (dweight) std::memset(dweight, 0, sizeof(float) * learned);
    if (dbias) std::memset(dbias, 0, sizeof(float) * learned);
    for (int64_t g = 0; g < o.groups; g++) {
        const int64_t own = o.flags & PER_GROUP ? g % o.k * o.n : 0;
        const float *x = r.values + o.a + g * o.n, *dy = r.grads + o.gout + g * o.n;
        const float *weight = past(at(r.parameters, o.weight), own), *save = r.values + o.save + 2 * g * o.rows;
        float* dx = r.grads + o.ga + g * o.n;
        BY_WIDTH(norm_rows_backward, o.n, o, x, dy, dx, weight, past(dweight, own), past(dbias, own), save)
    }
}

// ------------------------------------------------------------------ gains

// A gain is a function of a number z: a constant, or c0 times a parameter.
double gain_of(int64_t mode, double z, double most) {
    const double s = 1.0 / (1.0 + std::exp(-z));
    switch (mode) {
    case SIZE: return std::fabs(z);
    case REST: return 1.0 - std::fabs(z);
    case SIGMOID: return s;
    case ROOT: return std::sqrt(1.0 - s * s);
    case EXP: return std::exp(z > most ? most : z);
    case GATE: return 1.0 - z * s;
    default: return z;
    }
}
double slope_of(int64_t mode, double z, double most) {
    const double s = 1.0 / (1.0 + std::exp(-z)), sign = z > 0 ? 1.0 : z < 0 ? -1.0 : z;
    switch (mode) {
    case SIZE: return sign;
    case REST: return -sign;
    case SIGMOID: return s * (1.0 - s);
    case ROOT: return -s * s * (1.0 - s) / std::sqrt(1.0 - s * s);
    case EXP: return z > most ? 0.0 : std::exp(z);
    case GATE: return -s * (1.0 + z * (1.0 - s));
    default: return 1.0;
    }
}

// y = gain x + bias; k neighbouring channels of the n share a gain, and all groups share all gains.
void gain(const Run& r, const Op& o) {
    const float *weight = at(r.parameters, o.weight), *bias = at(r.parameters, o.bias);
    const int64_t entries = o.n / o.k;
    float* factors = r.scratch;
    for (int64_t e = 0; e < entries; e++) factors[e] = (float)gain_of(o.mode, weight ? o.c0 * weight[e] : o.c0, o.c1);
    for (int64_t row = 0; row < o.rows; row++) for (int64_t g = 0; g < o.groups; g++) {
        const float* x = r.values + o.a + row * o.lda + g * o.n;
        float* y = r.values + o.out + row * o.ldo + g * o.n;
        if (o.k == 1 && bias) each(o.n, [=](int64_t i) { y[i] = factors[i] * x[i] + bias[i]; });
        else if (o.k == 1) each(o.n, [=](int64_t i) { y[i] = factors[i] * x[i]; });
        else for (int64_t e = 0; e < entries; e++) {
            const float factor = factors[e], more = bias ? bias[e] : 0.0f;
            for (int64_t i = e * o.k; i < (e + 1) * o.k; i++) y[i] = factor * x[i] + more;
        }
    }
}
void gain_backward(const Run& r, const Op& o) {
    const float* weight = at(r.parameters, o.weight);
    float *dweight = at(r.parameter_grads, o.weight), *dbias = at(r.parameter_grads, o.bias);
    const int64_t entries = o.n / o.k;
    const bool add = o.flags & ADD_A;
    float* factors = r.scratch;
    double *sums = r.sums, *shifts = r.sums + entries;
    for (int64_t e = 0; e < entries; e++) {
        factors[e] = o.mode == GATE ? 1.0f : (float)gain_of(o.mode, weight ? o.c0 * weight[e] : o.c0, o.c1);
        sums[e] = shifts[e] = 0;
    }
    for (int64_t row = 0; row < o.rows; row++) for (int64_t g = 0; g < o.groups; g++) {
        const float *x = r.values + o.a + row * o.lda + g * o.n, *dy = r.grads + o.gout + row * o.ldo + g * o.n;
        float* dx = r.grads + o.ga + row * o.lda + g * o.n;
        if (o.k == 1) {
            if (weight) each(o.n, [=](int64_t i) { sums[i] += (double)(x[i] * dy[i]); });
            if (dbias) each(o.n, [=](int64_t i) { shifts[i] += (double)dy[i]; });
            if (add) each(o.n, [=](int64_t i) { dx[i] += factors[i] * dy[i]; });
            else each(o.n, [=](int64_t i) { dx[i] = factors[i] * dy[i]; });
            continue;
        }
        for (int64_t e = 0; e < entries; e++) {
            const int64_t from = e * o.k, to = from + o.k;
            const float factor = factors[e];
            float sum = 0, shift = 0;
            #pragma omp simd reduction(+ : sum, shift)
            for (int64_t i = from; i < to; i++) sum += x[i] * dy[i], shift += dy[i];
            sums[e] += sum, shifts[e] += shift;
            if (add) for (int64_t i = from; i < to; i++) dx[i] += factor * dy[i];
            else for (int64_t i = from; i < to; i++) dx[i] = factor * dy[i];
        }
    }
    const bool more = o.flags & ADD_WEIGHT;
    for (int64_t e = 0; weight && e < entries; e++) {
        const float d = (float)(sums[e] * o.c0 * slope_of(o.mode, o.c0 * weight[e], o.c1));
        dweight[e] = more ? dweight[e] + d : d;
    }
    for (int64_t e = 0; dbias && e < entries; e++) dbias[e] = (float)shifts[e];
}

// ------------------------------------------------------------------ sum of two tensors

template <class F> void rows_of(const Op& o, int64_t lda, int64_t ldb, F f) {
    const int64_t n = o.groups * o.n;
    if (lda == n && ldb == n) f(0, 0, o.rows * n);
    else for (int64_t r = 0; r < o.rows; r++) f(r * lda, r * ldb, n);
}
void scaled(int64_t n, const float* x, float c, float* y, bool add) {
    if (add) each(n, [=](int64_t i) { y[i] += c * x[i]; });
    else each(n, [=](int64_t i) { y[i] = c * x[i]; });
}

// y = c0 a + c1 b
void mix(const Run& r, const Op& o) {
    const float c0 = (float)o.c0, c1 = (float)o.c1;
    const int64_t n = o.groups * o.n;
    const bool whole = o.lda == n && o.ldb == n && o.ldo == n;
    for (int64_t row = 0; row < (whole ? 1 : o.rows); row++) {
        const float *a = r.values + o.a + row * o.lda, *b = r.values + o.b + row * o.ldb;
        float* y = r.values + o.out + row * o.ldo;
        each(whole ? o.rows * n : n, [=](int64_t i) { y[i] = c0 * a[i] + c1 * b[i]; });
    }
}
void mix_backward(const Run& r, const Op& o) {
    const float* dy = r.grads + o.gout;
    float *da = r.grads + o.ga, *db = r.grads + o.gb;
    if (!(o.flags & NO_B))
        rows_of(o, o.ldo, o.ldb, [&](int64_t from, int64_t to, int64_t n) { scaled(n, dy + from, (float)o.c1, db + to, o.flags & ADD_B); });
    if (!(o.flags & NO_A))
        rows_of(o, o.ldo, o.lda, [&](int64_t from, int64_t to, int64_t n) { scaled(n, dy + from, (float)o.c0, da + to, o.flags & ADD_A); });
}

// ------------------------------------------------------------------ dropout

// y = x mask, of whole tensors; the caller writes the mask before each step
void masked(int64_t n, const float* x, const float* mask, float* y) {
    each(n, [=](int64_t i) { y[i] = x[i] * mask[i]; });
}

// ------------------------------------------------------------------ positions in queries and keys

// Rotates channel i with channel i + k of each group of n = 2 k channels, by the angle of the row's position; saved
// are k cosines and k sines of each position.
void rotate(const Run& r, const Op& o, const float* x, float* y, int64_t ldx, int64_t ldy, float direction, bool add) {
    for (int64_t row = 0; row < o.rows; row++) {
        const float *cos = r.values + o.save + row % r.length * o.n, *sin = cos + o.k;
        for (int64_t g = 0; g < o.groups; g++) {
            const float *a = x + row * ldx + g * o.n, *b = a + o.k;
            float *c = y + row * ldy + g * o.n, *d = c + o.k;
            each(o.k, [=](int64_t i) {
                const float s = direction * sin[i], one = a[i] * cos[i] - b[i] * s, two = b[i] * cos[i] + a[i] * s;
                c[i] = add ? c[i] + one : one, d[i] = add ? d[i] + two : two;
            });
        }
    }
}

// ------------------------------------------------------------------ attention

// The weights of a head are kept as [key, query]: queries are neighbours, so the softmax is a few passes
// of vectors down the keys. Of each key the queries from `first_kept` on are kept, the multiple of 16 below
// what a tile of the products may read; those before the key are 0. Without a mask (ALL) all queries are kept.
inline int64_t first_kept(int64_t key) { return std::max<int64_t>(0, key - TALL) & ~int64_t{15}; }

void attention(const Run& r, const Op& o, double* seen) {
    const int64_t T = r.length, H = r.heads, width = o.n / H;
    const float alpha = (float)o.c0;
    const bool all = o.mode == ALL;
    float *top = r.scratch, *sum = top + T, *mean = sum + T, *size = mean + T;
    float largest = 0;
    double entropy = 0, sink = 0, *most = r.sums;
    const int64_t low = all ? 0 : 1;  // the first position that sees another one
    if (r.watched) for (int64_t i = low; i < T; i++) most[i] = std::log((double)(all ? T : i + 1));
    for (int64_t b = 0; b < r.batch; b++) for (int64_t h = 0; h < H; h++) {
        const float *q = r.values + o.a + b * T * o.lda + h * width, *k = r.values + o.b + b * T * o.ldb + h * width;
        const float* v = r.values + o.c + b * T * o.ldc + h * width;
        float* P = r.values + o.save + (b * H + h) * T * T;
        matmul(T, T, width, {k, o.ldb, 1}, {q, 1, o.lda}, P, T, false, nullptr, all ? FULL : COLUMNS_FROM_ROW);
        for (int64_t i = 0; i < T; i++) top[i] = -1e30f, sum[i] = mean[i] = size[i] = 0;
        for (int64_t j = 0; j < T; j++) {
            float* p = P + j * T;
            const int64_t first = all ? 0 : j;
            #pragma omp simd
            for (int64_t i = all ? 0 : first_kept(j); i < T; i++) {
                const float z = p[i] * alpha;
                p[i] = i >= first ? z : -INFINITY;
                top[i] = p[i] > top[i] ? p[i] : top[i];
            }
            if (r.watched) for (int64_t i = first; i < T; i++) {
                const float z = std::fabs(p[i]);
                size[i] = z > size[i] || z != z ? z : size[i];
            }
        }
        if (r.watched) for (int64_t i = 0; i < T; i++) largest = size[i] > largest || size[i] != size[i] ? size[i] : largest;
        for (int64_t j = 0; j < T; j++) {
            float* p = P + j * T;
            const int64_t first = all ? 0 : j;
            #pragma omp simd
            for (int64_t i = all ? 0 : first_kept(j); i < T; i++) {
                const float z = p[i] - top[i], e = exp_of(z);
                mean[i] += e * (i >= first ? z : 0.0f), sum[i] += e;
                p[i] = e;
            }
        }
        if (r.watched) for (int64_t i = low; i < T; i++)
            entropy += (std::log((double)sum[i]) - mean[i] / sum[i]) / most[i];
        for (int64_t i = 0; i < T; i++) sum[i] = 1.0f / sum[i];
        for (int64_t j = 0; j < T; j++) for (int64_t i = all ? 0 : first_kept(j); i < T; i++) P[j * T + i] *= sum[i];
        if (r.watched) for (int64_t i = 1; i < T; i++) sink += P[i];
        matmul(T, width, T, {P, 1, T}, {v, o.ldc, 1}, r.values + o.out + b * T * o.ldo + h * width, o.ldo, false, nullptr, all ? FULL : DEPTH_TO_ROW);
    }
    if (!r.watched) return;
    const double heads = (double)(r.batch * H);
    seen[0] = largest, seen[1] = entropy / (heads * (T - low)), seen[2] = sink / (heads * (T - 1));
}

void attention_backward(const Run& r, const Op& o) {
    const int64_t T = r.length, H = r.heads, width = o.n / H;
    const float alpha = (float)o.c0;
    const bool all = o.mode == ALL;
    const Triangle columns = all ? FULL : COLUMNS_FROM_ROW, to = all ? FULL : DEPTH_TO_ROW, from = all ? FULL : DEPTH_FROM_ROW;
    float *dot = r.scratch, *S = r.scratch + T;
    for (int64_t b = 0; b < r.batch; b++) for (int64_t h = 0; h < H; h++) {
        const int64_t qa = b * T * o.lda + h * width, ka = b * T * o.ldb + h * width, va = b * T * o.ldc + h * width;
        const float *q = r.values + o.a + qa, *k = r.values + o.b + ka, *v = r.values + o.c + va;
        const float *P = r.values + o.save + (b * H + h) * T * T, *dy = r.grads + o.gout + b * T * o.ldo + h * width;
        matmul(T, T, width, {v, o.ldc, 1}, {dy, 1, o.ldo}, S, T, false, nullptr, columns);
        std::memset(dot, 0, sizeof(float) * T);
        for (int64_t j = 0; j < T; j++) {
            const float* p = P + j * T;
            float* s = S + j * T;
            const int64_t first = all ? 0 : j;
            #pragma omp simd
            for (int64_t i = all ? 0 : first_kept(j); i < T; i++) s[i] = i >= first ? s[i] : 0.0f, dot[i] += p[i] * s[i];
        }
        for (int64_t j = 0; j < T; j++) {
            const float* p = P + j * T;
            float* s = S + j * T;
            #pragma omp simd
            for (int64_t i = all ? 0 : first_kept(j); i < T; i++) s[i] = alpha * p[i] * (s[i] - dot[i]);
        }
        matmul(T, width, T, {S, 1, T}, {k, o.ldb, 1}, r.grads + o.ga + qa, o.lda, o.flags & ADD_A, nullptr, to);
        matmul(T, width, T, {S, T, 1}, {q, o.lda, 1}, r.grads + o.gb + ka, o.ldb, o.flags & ADD_B, nullptr, from);
        matmul(T, width, T, {P, T, 1}, {dy, o.ldo, 1}, r.grads + o.gc + va, o.ldc, o.flags & ADD_C, nullptr, from);
    }
}

// ------------------------------------------------------------------ the two ends of the model

// y = weight[token] + bias[position], or plus the saved vector of the position, or without one
void embed(const Run& r, const Op& o) {
    const float* tokens = r.parameters + o.weight;
    const float* positions = o.mode == LEARNED ? r.parameters + o.bias : r.values + o.save;
    for (int64_t i = 0; i < o.rows; i++) {
        const float *e = tokens + r.tokens[i] * o.n, *p = positions + (i % r.length) * o.n;
        float* y = r.values + o.out + i * o.n;
        if (o.mode == ABSENT) std::memcpy(y, e, sizeof(float) * o.n);
        else each(o.n, [=](int64_t j) { y[j] = e[j] + p[j]; });
    }
}
void embed_backward(const Run& r, const Op& o) {  // k: the size of the vocabulary
    float *tokens = r.parameter_grads + o.weight, *positions = at(r.parameter_grads, o.bias);
    if (!(o.flags & ADD_WEIGHT)) std::memset(tokens, 0, sizeof(float) * o.k * o.n);
    if (positions) std::memset(positions, 0, sizeof(float) * r.length * o.n);
    for (int64_t i = 0; i < o.rows; i++) {
        float *e = tokens + r.tokens[i] * o.n, *p = past(positions, (i % r.length) * o.n);
        const float* dy = r.grads + o.gout + i * o.n;
        if (p) for (int64_t j = 0; j < o.n; j++) e[j] += dy[j], p[j] += dy[j];
        else for (int64_t j = 0; j < o.n; j++) e[j] += dy[j];
    }
}

// Mean cross-entropy of the logits at targets >= 0. Saved is the gradient of the logits, with that of c0 (log Z)^2.
double cross_entropy(const Run& r, const Op& o) {
    double loss = 0;
    int64_t counted = 0;
    for (int64_t i = 0; i < o.rows; i++) counted += r.targets[i] >= 0;
    const float each_one = 1.0f / (float)counted;
    for (int64_t i = 0; i < o.rows; i++) {
        const float* z = r.values + o.a + i * o.n;
        float* g = r.values + o.save + i * o.n;
        const int64_t target = r.targets[i];
        if (target < 0) { std::memset(g, 0, sizeof(float) * o.n); continue; }
        float top = z[0], sum = 0;
        for (int64_t j = 1; j < o.n; j++) top = z[j] > top ? z[j] : top;
        #pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < o.n; j++) g[j] = exp_of(z[j] - top), sum += g[j];
        loss += std::log((double)sum) + ((double)top - (double)z[target]);
        const float more = o.c0 == 0 ? 1.0f : (float)(1.0 + 2.0 * o.c0 * (std::log((double)sum) + (double)top));
        const float share = more * each_one / sum;
        for (int64_t j = 0; j < o.n; j++) g[j] *= share;
        g[target] -= each_one;
    }
    return loss / (double)counted;
}

void linear(const Run& r, const Op& o) {  // y[rows, n] = x[rows, k] weight[n, k]^T + bias[n]
    matmul(o.rows, o.n, o.k, {r.values + o.a, o.lda, 1}, {r.parameters + o.weight, 1, o.k}, r.values + o.out, o.ldo, false,
           at(r.parameters, o.bias));
}
void linear_backward(const Run& r, const Op& o) {
    const float *x = r.values + o.a, *dy = r.grads + o.gout;
    float* dbias = at(r.parameter_grads, o.bias);
    matmul(o.n, o.k, o.rows, {dy, 1, o.ldo}, {x, o.lda, 1}, r.parameter_grads + o.weight, o.k);
    if (dbias) {
        std::memset(dbias, 0, sizeof(float) * o.n);
        for (int64_t i = 0; i < o.rows; i++) for (int64_t j = 0; j < o.n; j++) dbias[j] += dy[i * o.ldo + j];
    }
    matmul(o.rows, o.k, o.n, {dy, o.ldo, 1}, {r.parameters + o.weight, o.k, 1}, r.grads + o.ga, o.lda, o.flags & ADD_A);
}

}  // namespace

// ------------------------------------------------------------------ what a caller sees

extern "C" int64_t tape_version() { return VERSION; }

extern "C" void tape_forward(Run* run) {
    Run& r = *run;
    double* seen = r.seen;
    for (int64_t t = 0; t < r.count; t++) {
        const Op& o = r.ops[t];
        switch (o.kind) {
        case EMBED: embed(r, o); break;
        case NORM: norm(r, o); break;
        case LINEAR: linear(r, o); break;
        case ACTIVATION: activate(o.mode, o.rows * o.n, r.values + o.a, r.values + o.out); break;
        case ATTENTION: attention(r, o, seen), seen += 3; break;
        case MIX: mix(r, o); break;
        case GAIN: gain(r, o); break;
        case MASK: masked(o.rows * o.n, r.values + o.a, r.values + o.save, r.values + o.out); break;
        case LOSS: r.loss = cross_entropy(r, o); break;
        case GATED: gated(r, o); break;
        case ROTATE: rotate(r, o, r.values + o.a, r.values + o.out, o.lda, o.ldo, 1.0f, false); break;
        }
    }
}

extern "C" void tape_backward(const Run* run) {
    const Run& r = *run;
    for (int64_t t = r.count; t-- > 0;) {
        const Op& o = r.ops[t];
        switch (o.kind) {
        case EMBED: embed_backward(r, o); break;
        case NORM: norm_backward(r, o); break;
        case LINEAR: linear_backward(r, o); break;
        case ACTIVATION: activate_backward(o.mode, o.rows * o.n, r.values + o.a, r.grads + o.gout, r.grads + o.ga); break;
        case ATTENTION: attention_backward(r, o); break;
        case MIX: mix_backward(r, o); break;
        case GAIN: gain_backward(r, o); break;
        case MASK: masked(o.rows * o.n, r.grads + o.gout, r.values + o.save, r.grads + o.ga); break;
        case LOSS: std::memcpy(r.grads + o.ga, r.values + o.save, sizeof(float) * o.rows * o.n); break;
        case GATED: gated_backward(r, o); break;
        case ROTATE: rotate(r, o, r.grads + o.gout, r.grads + o.ga, o.ldo, o.lda, -1.0f, o.flags & ADD_A); break;
        }
    }
}

// One step of AdamW (decoupled weight decay) on n numbers, of which the first blocks * row are a matrix. Where
// `ratios` is not null it gets |change| / |values before| of each row. Pieces of equal size and one formula: the
// numbers are the same with and without.
extern "C" void tape_adamw(int64_t n, int64_t blocks, int64_t row, float* x, const float* grad, float* mean, float* square,
                           double lr, double beta1, double beta2, double eps, double decay, int64_t step, double* ratios) {
    constexpr int64_t PIECE = 1024;
    const float rate = (float)(lr / (1 - std::pow(beta1, (double)step)));
    const float root = (float)(1 / std::sqrt(1 - std::pow(beta2, (double)step)));
    const float b1 = (float)(1 - beta1), b2 = (float)beta2, c2 = (float)(1 - beta2), e = (float)eps;
    const float shrink = (float)(1 - lr * decay);
    double moved = 0, length = 0;
    for (int64_t from = 0, end; from < n; from = end) {
        const int64_t block = row ? from / row : blocks;
        const bool inside = block < blocks;
        end = std::min({n, from + PIECE, inside ? (block + 1) * row : n});
        float old[PIECE];
        if (ratios && inside) std::memcpy(old, x + from, sizeof(float) * (end - from));
        each(end - from, [&](int64_t j) {
            const int64_t i = from + j;
            mean[i] += b1 * (grad[i] - mean[i]);
            square[i] = b2 * square[i] + c2 * grad[i] * grad[i];
            x[i] = x[i] * shrink - rate * mean[i] / (std::sqrt(square[i]) * root + e);
        });
        if (!ratios || !inside) continue;
        float change = 0, size = 0;
        #pragma omp simd reduction(+ : change, size)
        for (int64_t j = 0; j < end - from; j++) {
            const float d = x[from + j] - old[j];
            change += d * d, size += old[j] * old[j];
        }
        moved += change, length += size;
        if (end == (block + 1) * row) ratios[block] = std::sqrt(moved) / std::sqrt(length), moved = length = 0;
    }
}

// ------------------------------------------------------------------ what probes read

namespace {

double length(const float* x, int64_t n) {  // float sums of pieces, a double sum over them
    constexpr int64_t PIECE = 1024;
    double total = 0;
    int64_t from = 0;
    for (; from + 4 * PIECE <= n; from += 4 * PIECE) {  // four sums at once: one alone waits for itself
        const float *a = x + from, *b = a + PIECE, *c = b + PIECE, *d = c + PIECE;
        float sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
        #pragma omp simd reduction(+ : sum_a, sum_b, sum_c, sum_d)
        for (int64_t i = 0; i < PIECE; i++)
            sum_a += a[i] * a[i], sum_b += b[i] * b[i], sum_c += c[i] * c[i], sum_d += d[i] * d[i];
        total += sum_a, total += sum_b, total += sum_c, total += sum_d;
    }
    for (; from < n; from += PIECE) {
        const int64_t end = std::min(n, from + PIECE);
        float sum = 0;
        #pragma omp simd reduction(+ : sum)
        for (int64_t i = from; i < end; i++) sum += x[i] * x[i];
        total += sum;
    }
    return std::sqrt(total);
}

// Mean pairwise cosine of the T rows u of each sequence, 1 - sum |u - mean u|^2 / (T - 1); scratch has (T + 1) D.
double token_cosine(const float* x, int64_t B, int64_t T, int64_t D, float* scratch) {
    float* mean = scratch + T * D;
    double spread = 0;
    for (int64_t b = 0; b < B; b++) {
        std::memset(mean, 0, sizeof(float) * D);
        for (int64_t t = 0; t < T; t++, x += D) {
            float *u = scratch + t * D, squares = 0;
            #pragma omp simd reduction(+ : squares)
            for (int64_t j = 0; j < D; j++) squares += x[j] * x[j];
            const float length = std::sqrt(squares), s = 1.0f / (length < 1e-30f ? 1e-30f : length);
            for (int64_t j = 0; j < D; j++) u[j] = x[j] * s, mean[j] += u[j];
        }
        for (int64_t j = 0; j < D; j++) mean[j] /= (float)T;
        float sum = 0;
        for (int64_t t = 0; t < T; t++) {
            const float* u = scratch + t * D;
            #pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < D; j++) sum += (u[j] - mean[j]) * (u[j] - mean[j]);
        }
        spread += sum;
    }
    return 1.0 - spread / (double)(B * (T - 1));
}

// Mean s^4 / (mean s^2)^2 of the RMS s of each column of x [rows, D]; `sums` has 2 D numbers.
double kurtosis(const float* x, int64_t rows, int64_t D, double* sums) {
    constexpr int64_t PIECE = 64;  // float sums of pieces, double sums over them
    float* piece = (float*)(sums + D);
    double second = 0, fourth = 0;
    std::memset(sums, 0, sizeof(double) * D);
    for (int64_t from = 0; from < rows; from += PIECE) {
        std::memset(piece, 0, sizeof(float) * D);
        for (int64_t t = from; t < std::min(rows, from + PIECE); t++)
            each(D, [=](int64_t j) { piece[j] += x[t * D + j] * x[t * D + j]; });
        for (int64_t j = 0; j < D; j++) sums[j] += piece[j];
    }
    for (int64_t j = 0; j < D; j++) second += sums[j], fourth += sums[j] * sums[j];
    return fourth * (double)D / (second * second);
}

// The (n - 1) / 2-th of n sizes in ascending order. They are positive floats, as the integers of the same order;
// `top` is the largest, and `rms` the root mean square. Bounds close in from both sides, down to FEW candidates.
float median(int64_t n, const int32_t* sizes, int32_t top, float rms) {
    constexpr int64_t FEW = 48, BLOCK = 16;
    const int64_t rank = (n - 1) / 2;
    int32_t low = -1, high = top;  // the median is above `low` and not above `high`
    int64_t below = 0, inside = n;
    for (int64_t step = 0; inside > FEW && (int64_t)high - low > 1; step++) {
        // First the share of the RMS where a normal distribution has it, then where it lies if all are evenly
        // spread, then the middle.
        int64_t first, second;
        const int64_t span = (int64_t)high - low;
        if (step == 0) {
            first = std::bit_cast<int32_t>(0.55f * rms), second = std::bit_cast<int32_t>(0.75f * rms);
        } else if (step < 3) {
            const double at = (double)(rank - below) / (double)inside;
            first = low + (int64_t)((at - 0.03) * (double)span), second = low + (int64_t)((at + 0.03) * (double)span);
        } else {
            first = second = low + span / 2;
        }
        first = std::clamp<int64_t>(first, low, high), second = std::clamp<int64_t>(second, first, high);
        const int32_t one = (int32_t)first, two = (int32_t)second;
        int32_t up_to_one = 0, up_to_two = 0;
        #pragma omp simd reduction(+ : up_to_one, up_to_two)
        for (int64_t i = 0; i < n; i++) up_to_one += sizes[i] <= one, up_to_two += sizes[i] <= two;
        const int64_t end = below + inside;
        if (up_to_one > rank) high = one, inside = up_to_one - below;
        else if (up_to_two > rank) low = one, high = two, below = up_to_one, inside = up_to_two - below;
        else low = two, below = up_to_two, inside = end - below;
    }
    if (inside > FEW) return std::bit_cast<float>(high);
    int32_t few[FEW];
    int64_t k = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t end = std::min(n, i + BLOCK);
        int32_t any = 0;
        #pragma omp simd reduction(| : any)
        for (int64_t j = i; j < end; j++) any |= (sizes[j] > low) & (sizes[j] <= high);
        if (any) for (int64_t j = i; j < end; j++) if (sizes[j] > low && sizes[j] <= high) few[k++] = sizes[j];
    }
    std::nth_element(few, few + (rank - below), few + k);
    return std::bit_cast<float>(few[rank - below]);
}

// The largest and the median |x| of n numbers with this root mean square; NaN if one is NaN. `sizes` has n numbers.
void extremes(const float* x, int64_t n, float rms, int32_t* sizes, double* out) {
    constexpr int32_t INFINITE = 0x7f800000;
    int32_t top = 0;
    #pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < n; i++) {
        const int32_t size = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
        sizes[i] = size, top = size > top ? size : top;
    }
    const bool is_number = top <= INFINITE;
    out[0] = is_number ? std::bit_cast<float>(top) : NAN;
    out[1] = is_number ? median(n, sizes, top, rms) : NAN;
}

// Mean cosine of the rows of x and y [rows, D], 0 for a row of zeros; and the sum of all x y.
template <int FIXED> void row_cosine(const float* x, const float* y, int64_t rows, int64_t width, double* out) {
    const int64_t D = FIXED ? FIXED : width;
    double total = 0, product = 0;
    for (int64_t t = 0; t < rows; t++, x += D, y += D) {
        float dot = 0, xx = 0, yy = 0;
        #pragma omp simd reduction(+ : dot, xx, yy)
        for (int64_t j = 0; j < D; j++) dot += x[j] * y[j], xx += x[j] * x[j], yy += y[j] * y[j];
        const float size = std::sqrt(xx) * std::sqrt(yy);
        total += size == 0.0f ? 0.0f : dot / size, product += dot;
    }
    out[0] = total / (double)rows, out[1] = product;
}

}  // namespace

// L2 norms of `count` stretches of n numbers.
extern "C" void tape_lengths(int64_t count, const float* base, const int64_t* offsets, int64_t n, double* out) {
    for (int64_t c = 0; c < count; c++) out[c] = length(base + offsets[c], n);
}

// Of `count` tensors [B, T, D] five numbers each: L2 norm, mean pairwise cosine of the positions, largest |x|, median
// |x|, and kurtosis of the channels. One tensor after the other: it is then still in the cache.
extern "C" void tape_stream(int64_t count, const float* base, const int64_t* offsets, int64_t B, int64_t T, int64_t D,
                            float* scratch, int32_t* sizes, double* sums, double* out) {
    const int64_t n = B * T * D;
    for (int64_t c = 0; c < count; c++, out += 5) {
        const float* x = base + offsets[c];
        out[0] = length(x, n);
        out[1] = token_cosine(x, B, T, D, scratch);
        extremes(x, n, (float)(out[0] / std::sqrt((double)n)), sizes, out + 2);
        out[4] = kurtosis(x, B * T, D, sums);
    }
}

// Of `count` sublayers, with tensors [rows, D], five numbers each: L2 norms of what the branch reads, of the skip path
// and of the branch, mean cosine of the rows of the latter two, and the sum of their products.
extern "C" void tape_branches(int64_t count, const float* base, const int64_t* reads, const int64_t* skip,
                              const int64_t* branch, int64_t rows, int64_t D, double* out) {
    for (int64_t c = 0; c < count; c++, out += 5) {
        const float *x = base + skip[c], *y = base + branch[c];
        out[0] = length(base + reads[c], rows * D), out[1] = length(x, rows * D), out[2] = length(y, rows * D);
        switch (D) {
        case 32: row_cosine<32>(x, y, rows, D, out + 3); break;
        case 64: row_cosine<64>(x, y, rows, D, out + 3); break;
        default: row_cosine<0>(x, y, rows, D, out + 3);
        }
    }
}
