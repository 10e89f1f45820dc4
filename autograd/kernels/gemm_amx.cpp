#include <xgrad/autograd/kernels/gemm_amx.hpp>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>
#include <xgrad/autograd/kernels/gemm_pack.hpp>
#include <xgrad/autograd/memory.hpp>

// The compiler may have been told of no processor with AMX.
#define XGRAD_AMX __attribute__((target("amx-tile,amx-bf16")))
// GCC's intrinsics do not say that tiles are loaded from memory, and stored to it.
#define XGRAD_BARRIER asm volatile("" ::: "memory")

namespace xgrad::kernels {
namespace {

using Bfloat16 = std::uint16_t;

// A tile has 16 rows of 64 bytes, for 32 terms of the sums.  Two tiles are a strip: 32 rows of a,
// or 32 columns of b.
constexpr std::size_t edge = 16, terms = 32, strip = 2 * edge;
// A strip in memory: for every 32 terms its two tiles of first parts, of second and of third parts.
constexpr std::size_t tile_size = edge * terms, part_size = 2 * tile_size,
                      step_size = 3 * part_size;
constexpr std::size_t block_rows = 256;  // of a, which stay in the second-level cache

std::size_t left(std::size_t n, std::size_t begin, std::size_t most) {
  return n > begin ? std::min(n - begin, most) : 0;
}

// ---- the parts of a number ----

struct Parts {
  __m512i part[3];  // the bfloat16 are the upper halves

  explicit Parts(__m512 x) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000)),
                  half = _mm512_set1_epi32(0x8000);
    // To nearest: then what is left is half as large and has either sign, so errors do not add up.
    const auto round = [&](__m512 y) {
      return _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(y), half), upper);
    };
    part[0] = round(x);
    const __m512 rest = _mm512_sub_ps(x, _mm512_castsi512_ps(part[0]));
    part[1] = round(rest);
    part[2] = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(part[1])));
  }
};

// The exponents of the largest of some numbers and of the smallest other than zero.
struct Exponents {
  int large, small;
};

class Range {
 public:
  void add(__m512 x) {
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    largest_ = _mm512_max_epu32(largest_, magnitude);
    // Zero becomes the largest of all.
    smallest_ = _mm512_min_epu32(smallest_, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
  }
  Exponents exponents() const {
    return {exponent(_mm512_reduce_max_epu32(largest_)),
            exponent(_mm512_reduce_min_epu32(smallest_))};
  }

 private:
  static int exponent(std::uint32_t bits) { return static_cast<int>(bits >> 23) - 127; }

  __m512i largest_ = _mm512_setzero_si512(), smallest_ = _mm512_set1_epi32(-1);
};

// Whether all parts of these numbers, and all products of parts that matter, are numbers that AMX
// does not take for zero, as it does below 2^-126, and no sum overflows that need not.
bool all_parts_count(const Exponents& a, const Exponents& b) {
  constexpr int limit = 100;
  return std::max({a.large, b.large, a.large + b.large}) <= limit &&
         std::min({a.small, b.small, a.small + b.small}) >= -limit;
}

// ---- packing ----

// edge x edge elements of op(x): where they are, or in a copy with zeros in place of what is not.
struct Square {
  const float* x;
  std::size_t distance;  // between rows

  Square(bool transpose, const float* from, std::size_t ld, std::size_t rows, std::size_t columns,
         float* room)
      : x(room), distance(edge) {
    using Block = Transposed<float>;
    static_assert(Block::width == edge);
    if (rows < edge || columns < edge) {
      std::fill_n(room, edge * edge, 0.0F);
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
          room[i * edge + j] = transpose ? from[j * ld + i] : from[i * ld + j];
    } else if (transpose) {
      for (std::size_t i = 0; i < edge; i += Block::lane)
        Block::block(from + i, ld, room + i * edge, edge);
    } else {
      x = from;
      distance = ld;
    }
  }
  __m512 row(std::size_t i) const { return _mm512_loadu_ps(x + i * distance); }
};

// The order of a row's 16-bit halves in a tile.  Of a: the upper halves of its first 16 terms, then
// of the others.  Of b: of two terms in turn, for each column.
constexpr std::array<std::uint16_t, terms> halves(bool of_a) {
  std::array<std::uint16_t, terms> index{};
  for (std::size_t i = 0; i < terms; ++i)
    index[i] = static_cast<std::uint16_t>(of_a ? 2 * i + 1 : i / 2 * 2 + 1 + i % 2 * terms);
  return index;
}

// A strip of op(a), `edges` rows of k terms, or of op(b), `edges` columns; zeros fill it up.
template <bool of_a>
Exponents pack(bool transpose, std::size_t edges, std::size_t k, const float* x, std::size_t ld,
               Bfloat16* to) {
  alignas(64) static constexpr std::array<std::uint16_t, terms> index = halves(of_a);
  const __m512i order = _mm512_load_si512(index.data());
  alignas(64) float room[2][edge * edge];
  Range range;
  for (std::size_t p = 0; p < k; p += terms, to += step_size)
    for (std::size_t i = 0; i < edges; i += edge) {
      const auto square = [&](std::size_t half) {
        const std::size_t q = p + half * edge, n = left(edges, i, edge), m = left(k, q, edge);
        // Of what is beyond k or the edge, no element is looked at.
        const float* const from = x + (of_a != transpose ? i * ld + q : q * ld + i);
        return Square(transpose, from, ld, of_a ? n : m, of_a ? m : n, room[half]);
      };
      const Square first = square(0), second = square(1);
      for (std::size_t r = 0; r < edge; ++r) {
        const Square& both = r < edge / 2 ? first : second;
        const __m512 y = of_a ? first.row(r) : both.row(r * 2 % edge),
                     z = of_a ? second.row(r) : both.row(r * 2 % edge + 1);
        range.add(y);
        range.add(z);
        const Parts ys(y), zs(z);
        for (std::size_t n = 0; n < 3; ++n)
          _mm512_store_si512(to + n * part_size + (i + r) * terms,
                             _mm512_permutex2var_epi16(ys.part[n], order, zs.part[n]));
      }
    }
  return range.exponents();
}

// ---- multiplying ----

// This thread's tiles, while there is one of these.
class Tiles {
 public:
  XGRAD_AMX Tiles() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const configuration;
    asm volatile("" ::"m"(configuration));
    _tile_loadconfig(&configuration);
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  XGRAD_AMX ~Tiles() { _tile_release(); }
};

// Tiles 0 to 3, two beside each other, += strip a times strip b, of which tiles 4 and 5, 6 and 7
// hold a part.  From one product of parts to the next only one of the two changes, and the largest
// is the last.
XGRAD_AMX void add_products(bool two_rows, bool two_columns, const Bfloat16* a, const Bfloat16* b,
                            const Tile<float>& s) {
  const auto load_a = [&](std::size_t part) XGRAD_AMX {
    _tile_loadd(4, a + part * part_size, 64);
    if (two_rows)
      _tile_loadd(5, a + part * part_size + tile_size, 64);
  };
  const auto load_b = [&](std::size_t part) XGRAD_AMX {
    _tile_loadd(6, b + part * part_size, 64);
    if (two_columns)
      _tile_loadd(7, b + part * part_size + tile_size, 64);
  };
  const auto add = [&]() XGRAD_AMX {
    _tile_dpbf16ps(0, 4, 6);
    if (two_columns)
      _tile_dpbf16ps(1, 4, 7);
    if (two_rows)
      _tile_dpbf16ps(2, 5, 6);
    if (two_rows && two_columns)
      _tile_dpbf16ps(3, 5, 7);
  };
  // Lines of c that are written next are fetched, a few between products: a store would wait.
  std::uintptr_t ahead = s.ahead;
  const std::size_t rows_at_a_time = (strip * terms + 3 * s.k - 1) / (3 * s.k);
  const auto fetch = [&] {
    for (std::size_t i = 0; i < rows_at_a_time; ++i, ahead += s.ldc * sizeof(float)) {
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 1);
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + edge * sizeof(float)), 1);
    }
  };
  for (std::size_t p = 0; p < s.k; p += terms, a += step_size, b += step_size) {
    load_a(2);
    load_b(0);
    add();
    fetch();
    load_a(1);
    add();
    load_b(1);
    add();
    fetch();
    load_a(0);
    add();
    load_b(2);
    add();
    fetch();
    load_b(0);
    add();
  }
}

// c = a b * alpha + added * beta for strips of so many rows and columns.  Sums begin with 0, not
// with c: in a long one, of many such pieces, each term would be rounded as c is.
XGRAD_AMX void multiply_strips(std::size_t rows, std::size_t columns, const Bfloat16* a,
                               const Bfloat16* b, const Tile<float>& s) {
  alignas(64) float room[strip * strip];
  XGRAD_BARRIER;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  add_products(rows > edge, columns > edge, a, b, s);
  const bool to_c = rows == strip && columns == strip && s.alpha == 1 && s.beta == 0;
  float* const c = to_c ? s.c : room;
  const std::size_t row = to_c ? s.ldc : strip, distance = row * sizeof(float);
  _tile_stored(0, c, distance);
  _tile_stored(1, c + edge, distance);
  _tile_stored(2, c + edge * row, distance);
  _tile_stored(3, c + edge * row + edge, distance);
  XGRAD_BARRIER;
  for (std::size_t i = 0; i < rows && !to_c; ++i) {
    const float* const x = room + i * strip;
    const float* const added = s.added + i * s.added_row;
    float* const to = s.c + i * s.ldc;
    for (std::size_t j = 0; j < columns; ++j)
      to[j] = s.beta == 0 ? x[j] * s.alpha  // what is there may be garbage
                          : x[j] * s.alpha + added[j] * s.beta;
  }
}

// What a strip holds.
struct Strip {
  Exponents all;
  bool looked = false;
  std::array<Exponents, strip> of_edge;  // of each row of a or column of b, once looked

  void look(const float* x, std::size_t edges, std::size_t k, std::size_t across,
            std::size_t along) {
    for (std::size_t i = 0; i < edges && !looked; ++i) {
      Range range;
      for (std::size_t p = 0; p < k; ++p)
        range.add(_mm512_set1_ps(x[i * across + p * along]));
      of_edge[i] = range.exponents();
    }
    looked = true;
  }
};

}  // namespace

bool has_amx() {
  static const bool allowed = [] {
    constexpr unsigned bf16 = 1U << 22, tile = 1U << 24;
    constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bf16) != 0 && (d & tile) != 0 &&
           syscall(SYS_arch_prctl, request, tile_data) == 0;
  }();
  return allowed;
}

void multiply_amx(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n,
                  const Tile<float>& s, std::size_t lda, std::size_t ldb,
                  FunctionRef<std::size_t, std::size_t, std::size_t, std::size_t> otherwise) {
  thread_local std::vector<Bfloat16, Allocator<Bfloat16>> memory;
  const std::size_t a_row = transpose_a ? 1 : lda, a_column = transpose_a ? lda : 1,
                    b_row = transpose_b ? 1 : ldb, b_column = transpose_b ? ldb : 1;
  const std::size_t size = (s.k + terms - 1) / terms * step_size;  // of a strip
  const std::size_t strips = (n + strip - 1) / strip + block_rows / strip;
  if (memory.size() < strips * size)
    memory.resize(strips * size);
  Bfloat16 *const a = memory.data(), *const b = a + block_rows / strip * size;
  std::array<Strip, amx_columns / strip> strips_of_b;
  for (std::size_t j = 0; j < n; j += strip)
    strips_of_b[j / strip].all = pack<false>(transpose_b, left(n, j, strip), s.k,
                                             s.b + j * b_column, ldb, b + j / strip * size);
  const Tiles tiles;
  for (std::size_t block = 0; block < m; block += block_rows) {
    const std::size_t rows = left(m, block, block_rows);
    std::array<Strip, block_rows / strip> strips_of_a;
    for (std::size_t i = 0; i < rows; i += strip)
      strips_of_a[i / strip].all = pack<true>(transpose_a, left(rows, i, strip), s.k,
                                              s.a + (block + i) * a_row, lda, a + i / strip * size);
    for (std::size_t j = 0; j < n; j += strip)
      for (std::size_t i = 0; i < rows; i += strip) {
        const std::size_t height = left(rows, i, strip), width = left(n, j, strip);
        const Bfloat16* const packed_a = a + i / strip * size;
        const Bfloat16* const packed_b = b + j / strip * size;
        Strip &of_a = strips_of_a[i / strip], &of_b = strips_of_b[j / strip];
        Tile<float> t = s;
        t.c += (block + i) * s.ldc + j;
        t.added += (block + i) * s.added_row + j;
        const bool below = i + strip < rows;
        t.ahead = reinterpret_cast<std::uintptr_t>(below ? t.c : s.c + block * s.ldc + j) +
                  (below ? strip * s.ldc : strip) * sizeof(float);
        if (all_parts_count(of_a.all, of_b.all)) {
          multiply_strips(height, width, packed_a, packed_b, t);
          continue;
        }
        // Both ways, and each row and column decides for itself: no element's last bits depend on
        // rows and columns beside its own.
        alignas(64) float room[strip * strip];
        float* const c = std::exchange(t.c, room);
        t.ldc = strip;
        multiply_strips(height, width, packed_a, packed_b, t);
        otherwise(block + i, height, j, width);
        of_a.look(s.a + (block + i) * a_row, height, s.k, a_row, a_column);
        of_b.look(s.b + j * b_column, width, s.k, b_column, b_row);
        for (std::size_t p = 0; p < height; ++p)
          for (std::size_t q = 0; q < width; ++q)
            if (all_parts_count(of_a.of_edge[p], of_b.of_edge[q]))
              c[p * s.ldc + q] = room[p * strip + q];
      }
  }
}

}  // namespace xgrad::kernels

#else

namespace xgrad::kernels {

bool has_amx() { return false; }
void multiply_amx(bool, bool, std::size_t, std::size_t, const Tile<float>&, std::size_t,
                  std::size_t, FunctionRef<std::size_t, std::size_t, std::size_t, std::size_t>) {}

}  // namespace xgrad::kernels

#endif
