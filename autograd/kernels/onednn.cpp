#include "onednn.hpp"

#ifdef XGRAD_ONEDNN
#include <dlfcn.h>

#include <dnnl.hpp>

#include <array>
#include <bit>
#include <map>
#include <unordered_map>
#include <vector>
#include "../memory.hpp"
#include "../per_thread.hpp"

namespace xgrad::kernels::onednn {
namespace {

// Keeps oneDNN from using OpenMP's threads, which would compete with ours; the caller's own loops
// have them again afterwards.
class OneThread {
 public:
  OneThread() : before_(most_threads()) { set_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { set_threads(before_); }

  // Whether oneDNN has threads, and this cannot keep it from using them.
  static bool fails() {
    return DNNL_CPU_RUNTIME != DNNL_RUNTIME_SEQ &&
           (DNNL_CPU_RUNTIME != DNNL_RUNTIME_OMP || most == nullptr || set == nullptr);
  }

 private:
  static int most_threads() { return most == nullptr ? 0 : most(); }
  static void set_threads(int n) {
    if (set != nullptr)
      set(n);
  }
  static inline auto* const most =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  static inline auto* const set =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));

  int before_;
};

// Both live as long as the process: destructors of objects with static storage may multiply.
const dnnl::engine& engine() {
  static const auto* const made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *made;
}
dnnl::stream& stream() {
  static auto* const made = new dnnl::stream(engine());
  return *made;
}

// The sizes, distances between rows and factors of a product.
using Key = std::array<std::size_t, 10>;

// A compiled product with handles of its operands, result and scratch memory.
struct Product {
  dnnl::matmul run;
  std::unordered_map<int, dnnl::memory> arguments;
  std::size_t scratch = 0;

  explicit Product(const Key& key) {
    const auto [transpose_a, transpose_b, m, n, k, lda, ldb, ldc, alpha, beta] = key;
    using Type = dnnl::memory::data_type;
    const auto matrix = [](std::size_t rows, std::size_t columns, Type type, bool transpose,
                           std::size_t ld) {
      const auto size = [](std::size_t s) { return static_cast<dnnl::memory::dim>(s); };
      return dnnl::memory::desc({size(rows), size(columns)}, type,
                                {transpose ? 1 : size(ld), transpose ? size(ld) : 1});
    };
    const auto factor = [](std::size_t bits) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    };
    dnnl::post_ops then;  // c = alpha * product, then + beta * c
    constexpr auto linear = dnnl::algorithm::eltwise_linear;
    if (factor(alpha) != 1)
#if DNNL_VERSION_MAJOR < 3
      then.append_eltwise(1.F, linear, factor(alpha), 0.F);
#else
      then.append_eltwise(linear, factor(alpha), 0.F);
#endif
    if (factor(beta) != 0)
      then.append_sum(factor(beta));
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(then);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto a = matrix(m, k, Type::bf16, transpose_a != 0, lda),
               b = matrix(k, n, Type::bf16, transpose_b != 0, ldb),
               c = matrix(m, n, Type::f32, false, ldc);
#if DNNL_VERSION_MAJOR < 3
    const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(a, b, c), attributes, engine());
#else
    const dnnl::matmul::primitive_desc plan(engine(), a, b, c, attributes);
#endif
    run = dnnl::matmul(plan);
    scratch = plan.scratchpad_desc().get_size();
    const auto argument = [&](int name, const dnnl::memory::desc& desc) {
      arguments.emplace(name, dnnl::memory(desc, engine(), nullptr));
    };
    argument(DNNL_ARG_SRC, a);
    argument(DNNL_ARG_WEIGHTS, b);
    argument(DNNL_ARG_DST, c);
    argument(DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc());
  }
};

// Compiled products of a thread, which oneDNN does not let several threads share.
struct Compiled {
  std::map<Key, Product> products;
  std::vector<char, Allocator<char>> scratch;
};

}  // namespace

const std::string& name() {
  static const std::string text = [] {
    constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const dnnl_version_t& v = *dnnl_version();
    return OneThread::fails() || (has & needed) != needed
               ? std::string()
               : "oneDNN " + std::to_string(v.major) + '.' + std::to_string(v.minor) + '.' +
                     std::to_string(v.patch);
  }();
  return text;
}

bool gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
          float alpha, const std::uint16_t* a, std::size_t lda, const std::uint16_t* b,
          std::size_t ldb, float beta, float* c, std::size_t ldc) {
  if (name().empty())
    return false;
  constexpr std::size_t most = 1024;  // lengths of texts vary
  auto& [products, scratch] = detail::per_thread<Compiled>();
  const Key key{std::size_t{transpose_a},
                std::size_t{transpose_b},
                m,
                n,
                k,
                lda,
                ldb,
                ldc,
                std::bit_cast<std::uint32_t>(alpha),
                std::bit_cast<std::uint32_t>(beta)};
  const OneThread one_thread;
  try {
    auto found = products.find(key);
    if (found == products.end()) {
      if (products.size() == most)
        products.clear();
      found = products.emplace(key, key).first;
    }
    Product& product = found->second;
    if (scratch.size() < product.scratch)
      scratch.resize(product.scratch);
    const auto put = [&](int argument, const void* data) {
      product.arguments.at(argument).set_data_handle(const_cast<void*>(data));
    };
    put(DNNL_ARG_SRC, a);
    put(DNNL_ARG_WEIGHTS, b);
    put(DNNL_ARG_DST, c);
    put(DNNL_ARG_SCRATCHPAD, scratch.data());
    product.run.execute(stream(), product.arguments);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace xgrad::kernels::onednn

#else

namespace xgrad::kernels::onednn {

const std::string& name() {
  static const std::string none;
  return none;
}

bool gemm(bool, bool, std::size_t, std::size_t, std::size_t, float, const std::uint16_t*,
          std::size_t, const std::uint16_t*, std::size_t, float, float*, std::size_t) {
  return false;
}

}  // namespace xgrad::kernels::onednn

#endif
