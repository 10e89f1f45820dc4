#pragma once
// Random numbers: memory filled as PyTorch fills a contiguous tensor of this type, and one choice.
//
// Integers and uniforms are PyTorch's bit for bit.  Normals go through log, sin and cos, whose last
// bits differ between vector units: doubles agree to 2 ulp, floats to 1e-6.

#include <cstddef>
#include <span>
#include <xgrad/autograd/generator.hpp>

namespace xgrad {

/// [0, 1).
void fill_uniform(std::span<float> out, Generator& generator);
void fill_uniform(std::span<double> out, Generator& generator);
/// [low, high): torch.uniform_.  ValueError unless low <= high, both finite.
void fill_uniform(std::span<float> out, double low, double high, Generator& generator);
void fill_uniform(std::span<double> out, double low, double high, Generator& generator);
/// Mean 0, deviation 1.  Under 16 values one by one; from 16 on Box-Muller in blocks of 16, a
/// ragged tail redrawn.
void fill_normal(std::span<float> out, Generator& generator);
void fill_normal(std::span<double> out, Generator& generator);
/// torch.normal_.  ValueError if std is negative or not a number.
void fill_normal(std::span<float> out, double mean, double std, Generator& generator);
void fill_normal(std::span<double> out, double mean, double std, Generator& generator);
/// N(mean, std) as it is within [a, b] (torch.nn.init.trunc_normal_).  ValueError unless std is
/// positive and a <= b.
void fill_trunc_normal(std::span<float> out, double mean, double std, double a, double b,
                       Generator& generator);
void fill_trunc_normal(std::span<double> out, double mean, double std, double a, double b,
                       Generator& generator);
/// 1 with probability p, else 0, as torch.bernoulli_(p).  ValueError unless 0 <= p <= 1.
void fill_bernoulli(std::span<float> out, double p, Generator& generator);
void fill_bernoulli(std::span<double> out, double p, Generator& generator);
/// What dropout multiplies by: 1 / (1 - p) with probability 1 - p, else 0; or whether it keeps
/// something.  p = 1 draws nothing, as in PyTorch.  `rows` is the first dimension of the masked
/// Tensor: a shard takes its rows of the batch's mask.  ValueError unless 0 <= p <= 1.
void fill_dropout(std::span<float> out, double p, Generator& generator, std::size_t rows = 0);
void fill_dropout(std::span<double> out, double p, Generator& generator, std::size_t rows = 0);
void fill_dropout(std::span<bool> out, double p, Generator& generator, std::size_t rows = 0);
/// With mean 1 / rate, as torch.exponential_(rate).  ValueError unless rate is positive and finite.
void fill_exponential(std::span<float> out, double rate, Generator& generator);
void fill_exponential(std::span<double> out, double rate, Generator& generator);
/// One index with these weights, as torch.multinomial(weights, 1): the largest of weight /
/// exponential.  ValueError if a weight is negative or not finite, or none is positive.
std::size_t multinomial(std::span<const float> weights, Generator& generator);

namespace detail {
/// Whether dropout keeps each of n elements: bit i % 32 of word i / 32, drawn as by fill_dropout().
std::vector<std::uint32_t> draw_kept(std::size_t n, double p, Generator& generator);
}  // namespace detail

}  // namespace xgrad
