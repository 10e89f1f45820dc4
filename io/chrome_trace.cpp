#include <xgrad/io/chrome_trace.hpp>

#include <xgrad/io/file.hpp>
#include <xgrad/io/json.hpp>

namespace xgrad::io {

void write_chrome_trace(const std::string& path, std::span<const Profile::Event> events) {
  JsonArray list;
  for (const Profile::Event& e : events)
    list.push_back(JsonObject{{"name", e.name},
                              {"ph", "X"},  // a complete event: it has a duration
                              {"ts", e.begin},
                              {"dur", e.end - e.begin},
                              {"pid", std::uint64_t{0}},
                              {"tid", std::uint64_t{e.thread}}});
  AtomicFile file(path);
  file.write(format_json(JsonObject{{"traceEvents", std::move(list)}}, InvalidUtf8::replaced));
  file.commit();
}

}  // namespace xgrad::io
