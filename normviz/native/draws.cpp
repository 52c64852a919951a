// The numbers of normviz/model/draws.py, for a browser: the same names, seeds and steps give the same bits.
//
// That file says how each number is made, and from which papers. Here nothing may be fused to a * b + c:
// WebAssembly's fixed SIMD has no such instruction, and other targets need -ffp-contract=off.
#include <cmath>
#include <cstdint>

namespace draws {

// ------------------------------------------------------------------ the first word of a name's key

inline uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

// The first 32 bits after the point of the square or cube root of a prime, by halving: SHA-256's constants.
inline uint32_t root_bits(uint32_t prime, bool cube) {
    uint64_t low = 0, high = uint64_t{1} << 37;  // the root times 2^32
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const unsigned __int128 square = (unsigned __int128)middle * middle;
        const bool below = cube ? square * middle >> 96 < prime : square >> 64 < prime;
        (below ? low : high) = middle;
    }
    return (uint32_t)low;
}

struct Constants {
    uint32_t rounds[64], start[8];
    Constants() {
        int found = 0;
        for (uint32_t n = 2; found < 64; n++) {
            bool is_prime = true;
            for (uint32_t d = 2; d * d <= n; d++) is_prime &= n % d != 0;
            if (!is_prime) continue;
            if (found < 8) start[found] = root_bits(n, false);
            rounds[found++] = root_bits(n, true);
        }
    }
};

// The first 8 bytes of SHA-256 (FIPS 180-4) of a name of any length, as a little-endian integer.
inline uint64_t name_word(const uint8_t* name, int64_t length) {
    static const Constants constants;
    uint32_t h[8];
    for (int i = 0; i < 8; i++) h[i] = constants.start[i];
    const int64_t blocks = (length + 9 + 63) / 64;
    for (int64_t block = 0; block < blocks; block++) {
        uint32_t w[64];
        for (int i = 0; i < 16; i++) {
            w[i] = 0;
            for (int byte = 0; byte < 4; byte++) {
                const int64_t at = block * 64 + i * 4 + byte, back = blocks * 64 - 1 - at;
                const uint32_t value = at < length ? name[at] : at == length ? 0x80 : back < 8 ? (uint64_t)length * 8 >> (8 * back) & 255 : 0;
                w[i] = w[i] << 8 | value;
            }
        }
        for (int i = 16; i < 64; i++) {
            const uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] + (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
        }
        uint32_t s[8];
        for (int i = 0; i < 8; i++) s[i] = h[i];
        for (int i = 0; i < 64; i++) {
            const uint32_t one = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants.rounds[i] + w[i];
            const uint32_t two = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            for (int k = 7; k > 0; k--) s[k] = s[k - 1];
            s[4] += one, s[0] = one + two;
        }
        for (int i = 0; i < 8; i++) h[i] += s[i];
    }
    const auto reversed = [](uint32_t x) { return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24; };
    return reversed(h[0]) | (uint64_t)reversed(h[1]) << 32;
}

// ------------------------------------------------------------------ words

// The words of a key and a step, one after another from a given one on.
class Words {
    uint64_t key[2], step, index, block[4];
    void fill() {  // Philox4x64-10
        uint64_t c[4] = {index / 4 + 1, 0, step, 0}, k[2] = {key[0], key[1]};
        for (int round = 0; round < 10; round++) {
            const unsigned __int128 p = (unsigned __int128)0xD2E7470EE14C6C93u * c[0], q = (unsigned __int128)0xCA5A826395121157u * c[2];
            const uint64_t next[4] = {(uint64_t)(q >> 64) ^ c[1] ^ k[0], (uint64_t)q, (uint64_t)(p >> 64) ^ c[3] ^ k[1], (uint64_t)p};
            for (int i = 0; i < 4; i++) c[i] = next[i];
            k[0] += 0x9E3779B97F4A7C15u, k[1] += 0xBB67AE8584CAA73Bu;
        }
        for (int i = 0; i < 4; i++) block[i] = c[i];
    }
public:
    Words(uint64_t name, uint64_t seed, uint64_t step_, uint64_t first) : key{name, seed}, step(step_), index(first), block{} {
        if (index % 4) fill();
    }
    uint64_t next() {
        if (index % 4 == 0) fill();
        return block[index++ % 4];
    }
};

// ------------------------------------------------------------------ numbers

inline double uniform(uint64_t word) { return (double)(word >> 11) * 0x1p-53; }

template <int N> double polynomial(const double (&c)[N], double r) {  // the highest power first
    double found = c[0];
    for (int i = 1; i < N; i++) found = found * r + c[i];
    return found;
}

inline double log_of(double x) {
    constexpr double LN2 = 0.6931471805599453, ROOT_HALF = 0.7071067811865476;
    constexpr double ODD[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
    int e;
    double m = std::frexp(x, &e);
    if (m < ROOT_HALF) m *= 2.0, e -= 1;
    const double s = (m - 1.0) / (m + 1.0);
    return e * LN2 + 2.0 * s * polynomial(ODD, s * s);
}

inline double inverse_normal(double u) {  // AS241
    constexpr double CENTRE[][8] = {
        {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608},
        {5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0}};
    constexpr double MIDDLE[][8] = {
        {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734},
        {1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0}};
    constexpr double TAIL[][8] = {
        {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772},
        {2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0}};
    const auto ratio = [](const double (&of)[2][8], double r) { return polynomial(of[0], r) / polynomial(of[1], r); };
    const double q = u - 0.5;
    if (!(std::fabs(q) > 0.425)) return ratio(CENTRE, 0.180625 - q * q) * q;
    const double r = std::sqrt(-log_of(q < 0 ? u : 1.0 - u));
    const double size = r <= 5.0 ? ratio(MIDDLE, r - 1.6) : ratio(TAIL, r - 5.0);
    return q < 0 ? -size : size;
}

inline double normal(uint64_t word) { return inverse_normal(((double)(word >> 12) * 2.0 + 1.0) * 0x1p-53); }

}  // namespace draws
