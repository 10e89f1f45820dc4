#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>
#include <xgrad/nn/module.hpp>

namespace xgrad::nn {

namespace detail {

[[noreturn]] void refuse_input(const char* type, const char* input);
[[noreturn]] void refuse_access(std::size_t i, std::size_t size, bool exists);

// A layer of any type that takes a Tensor, Indices or both.
class AnyLayer {
 public:
  template <Layer M>
  AnyLayer(M layer) : held_(std::make_unique<Held<M>>(std::move(layer))) {}
  AnyLayer(const AnyLayer& other) : held_(other.held_->copy()) {}
  AnyLayer(AnyLayer&&) = default;
  AnyLayer& operator=(AnyLayer other) {
    held_ = std::move(other.held_);
    return *this;
  }

  Tensor operator()(const Tensor& x) const { return held_->call(x); }
  Tensor operator()(const Indices& x) const { return held_->call(x); }
  void collect(Collector& to, const std::string& name) { held_->collect(to, name); }
  template <class M>
  M* get() const {
    auto* const held = dynamic_cast<Held<M>*>(held_.get());
    return held != nullptr ? &held->layer : nullptr;
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual Tensor call(const Tensor& x) const = 0;
    virtual Tensor call(const Indices& x) const = 0;
    virtual void collect(Collector& to, const std::string& name) = 0;
  };
  template <class M>
  struct Held final : Base {
    explicit Held(M l) : layer(std::move(l)) {}
    std::unique_ptr<Base> copy() const override { return std::make_unique<Held>(layer); }
    Tensor call(const Tensor& x) const override {
      if constexpr (std::invocable<const M&, const Tensor&>)
        return layer(x);
      else
        refuse_input(typeid(M).name(), "a Tensor");
    }
    Tensor call(const Indices& x) const override {
      if constexpr (std::invocable<const M&, const Indices&>)
        return layer(x);
      else
        refuse_input(typeid(M).name(), "Indices");
    }
    void collect(Collector& to, const std::string& name) override { to.layer(name, layer); }
    M layer;
  };

  std::unique_ptr<Base> held_;
};

}  // namespace detail

/// Layers applied one after the other: Sequential{Linear(2, 16), Tanh{}, Linear(16, 1)}.  The first
/// may take Indices.  Their names are "0", "1", ..., as PyTorch's.  A layer that is there twice is
/// one layer: its Tensors are tied, as if visit said so.
///
/// In braces C++ constructs them from left to right, and random weights are drawn in that order.
/// Parentheses would leave the order to the compiler, so they do not compile.
class Sequential {
 public:
  Sequential(std::initializer_list<detail::AnyLayer> layers = {}) : layers_(layers) {}
  template <class A, class B, class... More>
  requires(Layer<std::remove_cvref_t<A>>&& Layer<std::remove_cvref_t<B>>)
      Sequential(A&&, B&&, More&&...)
  = delete;  // write Sequential{...}, with braces

  void push_back(detail::AnyLayer layer) { layers_.push_back(std::move(layer)); }
  std::size_t size() const { return layers_.size(); }
  /// Layer i, as what it is: net.at<Linear>(0).weight.  ValueError if it is not an M.
  template <Layer M>
  M& at(std::size_t i) {
    return get<M>(i);
  }
  template <Layer M>
  const M& at(std::size_t i) const {
    return get<M>(i);
  }

  Tensor operator()(const Tensor& x) const { return run(x, 0); }
  Tensor operator()(const Indices& x) const;
  static void visit(auto& self, auto&& v) {
    for (std::size_t i = 0; i < self.layers_.size(); ++i)
      v(std::to_string(i), self.layers_[i]);
  }

 private:
  Tensor run(Tensor x, std::size_t from) const;
  template <class M>
  M& get(std::size_t i) const {
    M* const layer = i < size() ? layers_[i].template get<M>() : nullptr;
    if (layer == nullptr)
      detail::refuse_access(i, size(), i < size());
    return *layer;
  }

  std::vector<detail::AnyLayer> layers_;
};

}  // namespace xgrad::nn
