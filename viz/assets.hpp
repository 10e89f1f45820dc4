#pragma once
// This folder's styles and scripts, which the build turns into strings (cmake/XgradEmbed.cmake).

#include <string_view>

namespace xgrad::viz::detail {

extern const std::string_view page_css, page_js;
extern const std::string_view attention_css, attention_js, attention_why_js;
extern const std::string_view chart_css, chart_js;
extern const std::string_view graph_css, graph_js, graph_rows_js;

}  // namespace xgrad::viz::detail
