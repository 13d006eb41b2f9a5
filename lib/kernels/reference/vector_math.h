// Functions of vectors of floats (lanes.h), for every argument: subnormal results, infinities and NaN included.
// Bounds, in units of the last place (of the smallest normal number below it) and against the function of the float
// that is passed, are what the tests check for every instruction set:
//   times_sigmoid(x, w) = x / (1 + exp(-w))       3
//   times_gauss(x) = x Phi(x), the exact gelu     6
//   tanh_vector                                   3
// Where x is -inf (or w is), the limit is given, which is 0, and not 0 * inf.
// The coefficients are minimax polynomials (Remez), relative errors below 1e-8.
#pragma once

#include "kernels/reference/lanes.h"

namespace shardplan::kernels {

/// to = 2^exponent for -127 < exponent < 128, anything else for others.
template <int lanes>
SHARDPLAN_INLINE void power_of_two(typename Lane<lanes>::Float& to, const typename Lane<lanes>::Int& exponent) {
    const typename Lane<lanes>::Int bits = (exponent + 127) << 23;
    std::memcpy(&to, &bits, sizeof(to));
}

/// exp(x + rest) as the product of x, near 1, and two powers of two: what is multiplied by the second one last is
/// rounded once, however small it is. @pre |x| <= 160 or NaN, |rest| small
template <int lanes>
SHARDPLAN_INLINE void exp_parts(typename Lane<lanes>::Float& x, const typename Lane<lanes>::Float& rest,
                                typename Lane<lanes>::Float& first, typename Lane<lanes>::Float& second) {
    using Float = typename Lane<lanes>::Float;
    // Adding and subtracting 1.5 * 2^23 rounds to an integer, which is then also what the bits differ by.
    const Float shifter = Float{} + 12582912.0F;
    const Float shifted = x * 1.44269504088896341F + shifter;
    const Float whole = shifted - shifter;
    typename Lane<lanes>::Word bits;
    std::memcpy(&bits, &shifted, sizeof(bits));
    bits <<= 10;
    typename Lane<lanes>::Int n;
    std::memcpy(&n, &bits, sizeof(n));
    n >>= 10;
    const typename Lane<lanes>::Int half = n >> 1;
    power_of_two<lanes>(first, half);
    power_of_two<lanes>(second, n - half);
    // ln(2) in two parts, the first short enough for an exact product.
    const Float r = (x - whole * 0.693359375F) + (rest + whole * 2.12194440e-4F);
    Float sum = Float{} + 0.0013813160453619537F;
    sum = sum * r + 0.0083694187172024105F;
    sum = sum * r + 0.041668456466113897F;
    sum = sum * r + 0.16666514793585615F;
    sum = sum * r + 0.49999993052354753F;
    x = r * r * sum + r + 1.0F;
}

/// x = x / (1 + exp(-w)).
template <int lanes>
SHARDPLAN_INLINE void times_sigmoid(typename Lane<lanes>::Float& x, const typename Lane<lanes>::Float& w) {
    using Float = typename Lane<lanes>::Float;
    using Int = typename Lane<lanes>::Int;
    const Int negative = w < 0.0F;
    Float part = negative ? w : -w;
    part = part < -160.0F ? Float{} - 160.0F : part;
    Float first;
    Float second;
    exp_parts<lanes>(part, Float{}, first, second);
    // The smaller of the two: exp(w) / (1 + exp(w)) where w is negative.
    const Float most = part * first;
    const Float below = (x < -128.0F ? Float{} - 128.0F : x) * most;
    x = (negative ? below : x) / (most * second + 1.0F) * (negative ? second : Float{} + 1.0F);
}

/// x = x Phi(x), Phi the normal distribution: with Q(|x|) = exp(-x^2 / 2) P(u) / (|x| + 4), u = (|x| - 4) / (|x| + 4),
/// the upper tail.
template <int lanes>
SHARDPLAN_INLINE void times_gauss(typename Lane<lanes>::Float& x) {
    using Float = typename Lane<lanes>::Float;
    using Int = typename Lane<lanes>::Int;
    using Word = typename Lane<lanes>::Word;
    const Int negative = x < 0.0F;
    Float a = negative ? -x : x;
    a = a > 15.0F ? Float{} + 15.0F : a;
    const Float w = 1.0F / (a + 4.0F);
    const Float u = (a - 4.0F) * w;
    Float sum = Float{} - 0.00013333067820786803F;
    sum = sum * u + 0.00017647394267684902F;
    sum = sum * u + 0.0015689696755787006F;
    sum = sum * u - 0.0035111377149135435F;
    sum = sum * u - 0.0075244903363767897F;
    sum = sum * u + 0.060403629138480415F;
    sum = sum * u - 0.18652357269607316F;
    sum = sum * u + 0.38713690990450761F;
    sum = sum * u - 0.6078965831711216F;
    sum = sum * u + 0.755285135310805F;
    // The square of the leading 12 bits is exact; the rest of the square is a small correction.
    Word bits;
    std::memcpy(&bits, &a, sizeof(bits));
    bits &= 0xfffff000U;
    Float leading;
    std::memcpy(&leading, &bits, sizeof(leading));
    const Float rest = (a - leading) * (a + leading) * -0.5F;
    Float part = leading * leading * -0.5F;
    Float first;
    Float second;
    exp_parts<lanes>(part, rest, first, second);
    const Float tail = part * first * (w * sum);
    const Float above = x * (1.0F - tail * second);
    x = negative ? (x < -15.0F ? Float{} - 15.0F : x) * tail * second : above;
}

/// x = tanh(x): an odd polynomial for small x, (1 - e) / (1 + e) with e = exp(-2 |x|) elsewhere.
template <int lanes>
SHARDPLAN_INLINE void tanh_vector(typename Lane<lanes>::Float& x) {
    using Float = typename Lane<lanes>::Float;
    const Float a = x < 0.0F ? -x : x;
    const Float square = x * x;
    Float sum = Float{} - 0.0059058627823630807F;
    sum = sum * square + 0.020805380367748227F;
    sum = sum * square - 0.0537866825832474F;
    sum = sum * square + 0.1333195823532454F;
    sum = sum * square - 0.33333299271944866F;
    const Float near = x * (square * sum) + x;
    Float e = a > 10.0F ? Float{} - 20.0F : a * -2.0F;
    Float first;
    Float second;
    exp_parts<lanes>(e, Float{}, first, second);
    e *= first * second;
    Float far = (1.0F - e) / (1.0F + e);
    far = a > 10.0F ? Float{} + 1.0F : far;
    far = x < 0.0F ? -far : far;
    x = a < 0.6F ? near : far;
}

}  // namespace shardplan::kernels
