// Profiles: the timed events, and no cost without one.

#include <algorithm>
#include <string>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fused.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/io/json.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;

namespace {

const Profile::Event* find(const std::vector<Profile::Event>& events, const std::string& name) {
  const auto at = std::ranges::find(events, name, &Profile::Event::name);
  return at == events.end() ? nullptr : &*at;
}

void step() {
  const Tensor x = ones({4, 3}), w = ones({2, 3}).requires_grad_();
  sum(linear(x, w)).backward();
}

}  // namespace

TEST_CASE("a profile has each op's forward and backward", "[profile]") {
  const Profile profile;
  step();
  const std::vector<Profile::Event> events = profile.events();
  for (const char* name : {"linear", "linear backward", "sum", "sum backward"}) {
    INFO(name);
    const Profile::Event* const e = find(events, name);
    REQUIRE(e != nullptr);
    CHECK(e->begin <= e->end);
    CHECK(e->self <= e->end - e->begin);
  }
  for (const char* name : {"linear backward", "calls", "share"})
    CHECK_THAT(profile.table(), ContainsSubstring(name));
}

TEST_CASE("the time of an op within another counts once", "[profile]") {
  const Profile profile;
  {
    const detail::Timed outer("outer");
    const detail::Timed inner("inner");
    step();
  }
  const auto events = profile.events();
  const Profile::Event* const outer = find(events, "outer");
  const Profile::Event* const inner = find(events, "inner");
  REQUIRE((outer != nullptr && inner != nullptr));
  CHECK(outer->self == Approx(outer->end - outer->begin - (inner->end - inner->begin)));
  double sum = 0;
  for (const Profile::Event& e : events)
    sum += e.self;
  CHECK(sum == Approx(outer->end - outer->begin));
}

TEST_CASE("a profile sees all threads, and ops that throw", "[profile]") {
  const Threads threads(4);
  const Profile profile;
  on_threads(8, [](std::size_t) { step(); });
  // (Without kernels the backward of a product is a product under its name.)
  CHECK(std::ranges::count(profile.events(), "linear", &Profile::Event::name) ==
        (detail::has_kernels ? 8 : 16));
  Tensor y = ones({2}).requires_grad_() * 1;
  y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
  CHECK_THROWS(sum(y * 2).backward());
  CHECK(find(profile.events(), "sum backward") != nullptr);
}

TEST_CASE("one profile at a time, and nothing without", "[profile]") {
  {
    const Profile profile;
    CHECK_THROWS_AS(Profile(), ValueError);
  }
  step();
  const Profile next;
  CHECK(next.events().empty());
}

TEST_CASE("a trace for a viewer is JSON, whatever an op is called", "[profile]") {
  const TemporaryFolder folder;
  const std::vector<Profile::Event> events = {{"a \"quoted\"\n\xff op", 3, 1.5, 4.0, 2.5}};
  io::write_chrome_trace(folder / "trace.json", events);
  const std::string text = read_bytes(folder / "trace.json");
  CHECK_THAT(text, ContainsSubstring("traceEvents") && ContainsSubstring("\"dur\":2.5") &&
                       ContainsSubstring("\"tid\":3") && ContainsSubstring("\\n"));
  CHECK_THROWS_AS(io::write_chrome_trace(folder / "no/trace.json", events), FileError);
}
